"""The manifests in deploy/: they build, are safe, and fit together."""

from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from cli.certs.certificates import identities
from gateway.replicas.feed import PART_BYTES
from gateway.settings import GatewaySettings
from moorage.units.quantity import scaled
from moorage_apps.__main__ import PROCESSES as PROCESSES_BY_NAME
from moorage_host.kube_scheduler import load_configuration
from moorage_host.policy import parse as parse_policy
from moorage_host.policy import read
from moorage_host.rpc.serve import ServerSettings
from moorage_host.rpc.settings import CycleSettings
from moorage_host.settings import parse_settings
from sandbox.apiserver import ApiServer
from sandbox.apiserver.resources.table import parse
from services.binder.settings import BinderSettings
from tools.manifests.rendering import DEPLOY, Manifest, installed, one

FILES = DEPLOY / "files"
PROCESSES = ("gateway", "filter", "scorer", "binder")

READING = 7
"""Memory that reading a call's body may take, relative to its size; see --body-limit."""

GIVEN_NODE_BYTES = 50_000
"""Memory of a node that calls bring; see given_nodes_cached."""


@pytest.fixture(scope="module")
def base() -> list[Manifest]:
    """What Moorage itself is, without its kube-scheduler."""
    return [m for m in installed("second-scheduler") if m["metadata"]["name"] != "scheduler"]


@pytest.fixture(scope="module")
def second_scheduler() -> list[Manifest]:
    return installed("second-scheduler")


def deployments(manifests: list[Manifest]) -> list[Manifest]:
    return [m for m in manifests if m["kind"] == "Deployment"]


def rules(manifests: list[Manifest], kind: str, name: str) -> set[tuple[str, str, str, str]]:
    return {
        (group, resource, verb, ",".join(rule.get("resourceNames", ())))
        for rule in one(manifests, kind, name)["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_every_file_is_yaml() -> None:
    for path in DEPLOY.rglob("*.yaml"):
        if "templates" in path.parts or path.parent == DEPLOY / "layouts":
            continue  # not YAML yet, or values, which may be empty
        assert all(yaml.safe_load_all(path.read_text())), path


def test_the_base_runs_the_four_processes_from_one_image(base: list[Manifest]) -> None:
    images = {d["metadata"]["name"]: container(d)["image"] for d in deployments(base)}
    assert set(images) == set(PROCESSES)
    assert len(set(images.values())) == 1


def test_a_rollout_ends_the_old_gateway_when_the_new_one_is_ready(base: list[Manifest]) -> None:
    spec = one(base, "Deployment", "gateway")["spec"]
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    assert (spec["replicas"], spec["strategy"]) == (1, rolling)


@pytest.mark.parametrize("layout", [each.stem for each in (DEPLOY / "install").iterdir()])
def test_every_container_passes_the_restricted_profile(layout: str) -> None:
    manifests = installed(layout)
    enforced = one(manifests, "Namespace", "moorage")["metadata"]["labels"]
    assert enforced["pod-security.kubernetes.io/enforce"] == "restricted"
    assert {"filter", "scorer", "binder"} < set(restricted(manifests))


def restricted(manifests: list[Manifest]) -> list[str]:
    """Check that what runs of Moorage needs no rights; return the names."""
    running = [each for each in manifests if each["kind"] in ("Deployment", "DaemonSet", "Pod")]
    found = [each for each in running if each["metadata"]["namespace"] == "moorage"]
    for each in found:
        pod = each["spec"] if each["kind"] == "Pod" else pod_spec(each)
        assert pod["enableServiceLinks"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for run in (*pod.get("initContainers", ()), *pod["containers"]):
            assert run["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
    return [each["metadata"]["name"] for each in found]


def test_nothing_waits_for_the_scheduler_that_it_makes_work(
    second_scheduler: list[Manifest],
) -> None:
    for deployment in deployments(second_scheduler):
        assert pod_spec(deployment)["schedulerName"] == "default-scheduler"
        assert pod_spec(deployment)["priorityClassName"] == "system-cluster-critical"


def test_pods_of_a_critical_class_have_the_quota_that_some_clusters_demand(
    second_scheduler: list[Manifest],
) -> None:
    quota = one(second_scheduler, "ResourceQuota", "critical-pods")
    (scope,) = quota["spec"]["scopeSelector"]["matchExpressions"]
    assert (scope["scopeName"], scope["operator"]) == ("PriorityClass", "In")
    replicas = 0
    for deployment in deployments(second_scheduler):
        assert pod_spec(deployment)["priorityClassName"] in scope["values"]
        assert deployment["metadata"]["namespace"] == quota["metadata"]["namespace"]
        replicas += deployment["spec"]["replicas"]
    # An update starts new pods before old ones are gone, and people add replicas.
    assert int(quota["spec"]["hard"]["pods"]) >= 10 * replicas


def test_everything_is_probed_and_has_bounds(second_scheduler: list[Manifest]) -> None:
    for deployment in deployments(second_scheduler):
        main = container(deployment)
        ports = {port["name"]: port["containerPort"] for port in main["ports"]}
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            assert main[probe]["httpGet"]["port"] in ports
        assert main["readinessProbe"]["httpGet"]["path"] == "/readyz"
        assert main["livenessProbe"]["httpGet"]["path"] == "/livez"
        assert {"cpu", "memory"} <= main["resources"]["requests"].keys()
        assert "memory" in main["resources"]["limits"]


def memory_limit(manifests: list[Manifest], name: str) -> int:
    limit = container(one(manifests, "Deployment", name))["resources"]["limits"]["memory"]
    return scaled("memory", limit)


@pytest.mark.parametrize(
    ("name", "settings"),
    [("filter", CycleSettings()), ("scorer", CycleSettings()), ("binder", BinderSettings())],
)
def test_the_messages_of_all_calls_fit_into_half_of_the_memory(
    base: list[Manifest], name: str, settings: ServerSettings
) -> None:
    worst = settings.max_concurrent_rpcs * settings.max_message_bytes
    assert worst <= memory_limit(base, name) / 2
    assert settings.max_message_bytes >= 2 * PART_BYTES, "a part and the longest object"


def test_what_the_gateway_holds_fits_into_its_memory(base: list[Manifest]) -> None:
    settings = GatewaySettings()
    bodies = READING * settings.body_bytes_in_flight
    nodes = GIVEN_NODE_BYTES * settings.given_nodes_cached
    assert bodies + nodes + settings.cycle_state_memory <= memory_limit(base, "gateway")
    assert settings.body_limit <= settings.body_bytes_in_flight


@pytest.mark.parametrize("name", PROCESSES)
def test_the_admin_port_is_where_the_probes_look(base: list[Manifest], name: str) -> None:
    main = container(one(base, "Deployment", name))
    assert {"name": "admin", "containerPort": 9090} in main["ports"]
    assert main["readinessProbe"]["httpGet"]["port"] == "admin"


@pytest.mark.parametrize("name", ["filter", "scorer"])
def test_plugin_code_gets_no_access_to_the_api(base: list[Manifest], name: str) -> None:
    assert pod_spec(one(base, "Deployment", name))["automountServiceAccountToken"] is False
    bindings = [m for m in base if m["kind"].endswith("RoleBinding")]
    assert not [b for b in bindings for s in b["subjects"] if s["name"] == name]


def test_every_process_is_one_that_can_be_started(base: list[Manifest]) -> None:
    for deployment in deployments(base):
        name = deployment["metadata"]["name"]
        *start, process = container(deployment)["command"]
        assert start == ["python", "-m", "moorage_apps"]
        assert process in PROCESSES_BY_NAME
        assert process.rpartition(".")[2] == name


def test_the_gateway_only_reads_and_the_binder_only_writes_what_it_must(
    base: list[Manifest],
) -> None:
    read = (("", "nodes"), ("", "pods"), ("resource.k8s.io", "deviceclasses"))
    assert rules(base, "ClusterRole", "moorage-gateway") == {
        *((group, resource, verb, "") for group, resource in read for verb in ("list", "watch")),
        ("events.k8s.io", "events", "list", ""),
    }
    assert rules(base, "Role", "gateway-events") == {("events.k8s.io", "events", "create", "")}
    assert rules(base, "ClusterRole", "moorage-binder") == {
        ("", "pods/binding", "create", ""),
        ("", "pods", "get", ""),
        ("", "pods/status", "patch", ""),
        ("events.k8s.io", "events", "create", ""),
        ("events.k8s.io", "events", "patch", ""),
    }


def test_the_second_scheduler_may_touch_only_its_own_lease(
    second_scheduler: list[Manifest],
) -> None:
    lease = yaml.safe_load((FILES / "kube-scheduler-config.yaml").read_text())
    name = lease["leaderElection"]["resourceName"]
    assert lease["leaderElection"]["resourceNamespace"] == "moorage"
    assert rules(second_scheduler, "Role", "scheduler-lease") == {
        ("coordination.k8s.io", "leases", "create", ""),
        ("coordination.k8s.io", "leases", "get", name),
        ("coordination.k8s.io", "leases", "update", name),
    }


def test_services_are_found_replica_by_replica(base: list[Manifest]) -> None:
    headless = {name: one(base, "Service", name)["spec"].get("clusterIP") for name in PROCESSES}
    assert headless == {"gateway": None, "filter": "None", "scorer": "None", "binder": "None"}


@pytest.mark.parametrize("name", PROCESSES)
def test_services_lead_to_open_ports_of_their_pods(base: list[Manifest], name: str) -> None:
    service, deployment = one(base, "Service", name), one(base, "Deployment", name)
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    (port,) = service["spec"]["ports"]
    ports = {p["name"]: p["containerPort"] for p in container(deployment)["ports"]}
    assert ports[port["targetPort"]] == port["port"]


def test_the_gateway_calls_the_services_that_exist(base: list[Manifest]) -> None:
    args = dict(
        arg.lstrip("-").split("=", 1)
        for arg in container(one(base, "Deployment", "gateway"))["args"]
    )
    for name in ("filter", "scorer", "binder"):
        (port,) = one(base, "Service", name)["spec"]["ports"]
        assert args[name] == f"dns:///{name}:{port['port']}"


def test_the_gateway_reads_the_policy_of_the_config_map(base: list[Manifest]) -> None:
    deployment = one(base, "Deployment", "gateway")
    (mount,) = (m for m in container(deployment)["volumeMounts"] if m["name"] == "policy")
    assert "subPath" not in mount
    assert f"--config={mount['mountPath']}/policy.yaml" in container(deployment)["args"]
    volumes = deployment["spec"]["template"]["spec"]["volumes"]
    (volume,) = (v for v in volumes if v["name"] == "policy")
    # The name has no hash of the content: a new policy need not restart the gateway.
    assert volume["configMap"]["name"] == "policy"
    config_map = one(base, "ConfigMap", volume["configMap"]["name"])
    policy = yaml.safe_load(config_map["data"]["policy.yaml"])
    assert policy["kind"] == "MoorageConfiguration"


def test_kube_scheduler_asks_the_gateway_what_the_policy_needs(base: list[Manifest]) -> None:
    configuration = load_configuration(FILES / "kube-scheduler-config.yaml")
    (extender,) = configuration.extenders
    url = urlsplit(extender.url_prefix)
    service = one(base, "Service", "gateway")
    assert url.hostname == f"{service['metadata']['name']}.{service['metadata']['namespace']}.svc"
    assert url.port == service["spec"]["ports"][0]["port"]
    verbs = (
        extender.filter_verb,
        extender.prioritize_verb,
        extender.preempt_verb,
        extender.bind_verb,
    )
    assert verbs == ("filter", "prioritize", "preempt", "")
    assert extender.node_cache_capable
    assert not extender.ignorable
    assert configuration.percentage_of_nodes_to_score == 100


def test_kube_scheduler_and_the_policies_speak_of_the_same_scheduler() -> None:
    configuration = load_configuration(FILES / "kube-scheduler-config.yaml")
    names = {profile.scheduler_name for profile in configuration.profiles}
    for policy in ("files/policy.yaml", "demo/policy.yaml"):
        profiles = yaml.safe_load((DEPLOY / policy).read_text())["profiles"]
        assert {profile["schedulerName"] for profile in profiles} == names
    for pod in yaml.safe_load_all((DEPLOY / "demo/pods.yaml").read_text()):
        assert pod["spec"]["schedulerName"] in names


def test_the_policies_are_policies() -> None:
    for path in ("files/policy.yaml", "demo/policy.yaml"):
        parse_policy(read(DEPLOY / path), path)


def test_an_api_server_takes_the_objects_of_the_demonstration() -> None:
    cluster = ApiServer().cluster
    counts = []
    for file, prefix in (("nodes", "/api/v1/nodes"), ("pods", "/api/v1/namespaces/default/pods")):
        objects = list(yaml.safe_load_all((DEPLOY / f"demo/{file}.yaml").read_text()))
        for obj in objects:
            cluster.create(parse(f"{prefix}/{obj['metadata']['name']}"), obj)
        counts.append(len(objects))
    assert counts == [3, 6]


def test_one_demonstration_node_has_the_image_and_no_other_difference() -> None:
    nodes = list(yaml.safe_load_all((DEPLOY / "demo/nodes.yaml").read_text()))
    assert len({str(node["status"]["allocatable"]) for node in nodes}) == 1
    assert not [node for node in nodes if node.get("spec", {}).get("taints")]
    (pod,) = (
        pod
        for pod in yaml.safe_load_all((DEPLOY / "demo/pods.yaml").read_text())
        if pod["metadata"]["name"] == "notebook"
    )
    (image,) = (container["image"] for container in pod["spec"]["containers"])
    holders = [n for n in nodes for i in n["status"].get("images", ()) if image in i["names"]]
    assert [node["metadata"]["name"] for node in holders] == ["demo-m03"]


def pod_spec(deployment: Manifest) -> Manifest:
    spec: Manifest = deployment["spec"]["template"]["spec"]
    return spec


def container(deployment: Manifest) -> Manifest:
    (only,) = pod_spec(deployment)["containers"]
    main: Manifest = only
    return main


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("gateway", GatewaySettings),
        ("filter", CycleSettings),
        ("scorer", CycleSettings),
        ("binder", BinderSettings),
    ],
)
def test_every_process_understands_its_options(
    base: list[Manifest], name: str, settings: type[Any]
) -> None:
    template = container(one(base, "Deployment", name))
    environ = {e["name"]: e.get("value", "") for e in template.get("env", ())}
    parse_settings(settings, name, template.get("args", ()), environ)


@pytest.fixture(scope="module")
def with_cert_manager() -> list[Manifest]:
    return installed("monitoring")


def mounted_secret(deployment: Manifest) -> tuple[str, str]:
    """Return where a process finds its certificate, and the name of the Secret."""
    (volume,) = (v for v in pod_spec(deployment)["volumes"] if v["name"] == "tls")
    (mount,) = (m for m in container(deployment)["volumeMounts"] if m["name"] == "tls")
    assert mount["readOnly"]
    assert "subPath" not in mount  # such a mount never sees a renewed certificate
    return mount["mountPath"], volume["secret"]["secretName"]


def test_every_process_has_a_certificate_and_plain_text_is_not_allowed(
    second_scheduler: list[Manifest],
) -> None:
    settings = one(second_scheduler, "ConfigMap", "settings")["data"]
    assert settings["MOORAGE_TLS"] == "/etc/moorage/tls"
    assert "MOORAGE_INSECURE" not in settings
    for name in (*PROCESSES, "scheduler"):
        found = one(second_scheduler, "Deployment", name)
        assert mounted_secret(found) == ("/etc/moorage/tls", f"{name}-tls")
        assert pod_spec(found)["securityContext"]["fsGroup"] == 65532
    for name in PROCESSES:
        main = container(one(second_scheduler, "Deployment", name))
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            assert main[probe]["httpGet"]["scheme"] == "HTTPS"


def test_kube_scheduler_shows_its_certificate_and_checks_the_gateways_name() -> None:
    (extender,) = load_configuration(FILES / "kube-scheduler-config.yaml").extenders
    assert extender.url_prefix.startswith("https:")
    assert extender.enable_https
    assert extender.tls_config is not None
    assert extender.tls_config.server_name == "moorage-gateway"
    assert extender.tls_config.cert_file == "/etc/moorage/tls/tls.crt"
    assert not extender.tls_config.insecure


def test_cert_manager_writes_the_secrets_that_are_mounted(
    with_cert_manager: list[Manifest],
) -> None:
    certificates = {
        m["spec"]["secretName"]: m["spec"]
        for m in with_cert_manager
        if m["kind"] == "Certificate" and not m["spec"].get("isCA")
    }
    mounted = {mounted_secret(each)[1] for each in deployments(with_cert_manager)}
    assert set(certificates) == mounted | {"operator-tls", "metrics-tls", "annotator-tls"}
    names = identities()
    for secret, spec in certificates.items():
        expected = [n for n in names[secret.removesuffix("-tls")] if n[0].isalpha()]
        assert spec["dnsNames"] == [name for name in expected if name != "localhost"]
        assert (spec["duration"], spec["renewBefore"]) == ("24h", "8h")
        assert {"server auth", "client auth"} <= set(spec["usages"])
        one(with_cert_manager, spec["issuerRef"]["kind"], spec["issuerRef"]["name"])
