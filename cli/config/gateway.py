"""Where kube-scheduler finds the gateway in a cluster, and how it proves who it is."""

from moorage_host.tls.identities import service_identity

GATEWAY_URL = "https://gateway.moorage.svc:8888"
"""The gateway's Service as it is deployed."""

TLS_FOLDER = "/etc/moorage/tls"
"""Where kube-scheduler finds its certificate as it is deployed."""


def tls_fields(url: str) -> dict[str, object]:
    """Return the fields of an extender's entry with which kube-scheduler calls an https URL."""
    if not url.startswith("https:"):
        return {}
    files = {"caFile": "ca.crt", "certFile": "tls.crt", "keyFile": "tls.key"}
    paths = {field: f"{TLS_FOLDER}/{file}" for field, file in files.items()}
    return {
        "enableHTTPS": True,
        "tlsConfig": {"serverName": service_identity("gateway"), **paths},
    }
