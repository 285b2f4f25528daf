"""The TLS context for calls to an extender, by the rules of kube-scheduler."""

import ssl

from moorage.errors import ConfigurationError
from sandbox.scheduler.config import ExtenderConfig


def extender_context(config: ExtenderConfig) -> ssl.SSLContext | bool:
    """Return the context for an extender; True means that of the HTTP client.

    Raises:
        ConfigurationError: A file cannot be used.
    """
    tls = config.tls_config
    if tls is None and not config.enable_https:
        return True
    try:
        context = ssl.create_default_context(cafile=(tls.ca_file or None) if tls else None)
        if tls and tls.cert_file:
            context.load_cert_chain(tls.cert_file, tls.key_file)
    except OSError as error:  # those of ssl too
        raise ConfigurationError(
            f"cannot use the files in tlsConfig of the extender at {config.url_prefix}: {error}"
        ) from error
    # Like kube-scheduler: enableHTTPS without a CA verifies nothing.
    trusts = tls is not None and bool(tls.ca_file)
    if (tls and tls.insecure) or (config.enable_https and not trusts):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context
