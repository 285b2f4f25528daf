"""The chart: what is committed of it is current, and values have the effect that they say."""

import re
import subprocess
from fnmatch import fnmatch
from typing import Any

import pytest
import yaml

from cli.capacity.command import capacity
from cli.certs.certificates import HERE, identities
from cli.config.extender import extender_weight
from cli.gate.command import gate
from gateway.settings import GatewaySettings
from moorage_host.kube_scheduler import VERBS
from services.filter.plugins.stateful_set_zone import StatefulSetZone
from tests.deploy.test_manifests import pod_spec, restricted, rules
from tools.build import find
from tools.manifests.plugins import names, verbs_of
from tools.manifests.rendering import (
    CHART,
    DEPLOY,
    INSTALL,
    Values,
    generated,
    helm_test,
    layouts,
    one,
    render,
    rendered,
)

COMMANDS = {"gate": gate, "capacity": capacity}
"""Those of the command that run in a cluster."""


def test_what_is_committed_is_what_the_chart_makes() -> None:
    files = generated()
    committed = {*INSTALL.iterdir(), *(DEPLOY / "files").iterdir()}
    stale = [path for path in committed if path not in files]
    stale += [path for path, text in files.items() if not path.exists() or path.read_text() != text]
    assert not stale, "run `make manifests` and commit the result"


def entries(values: Values) -> list[dict[str, Any]]:
    """Return the extender entries that the chart makes."""
    config_map = one(render(values), "ConfigMap", "kube-scheduler")
    text = config_map["data"]["kube-scheduler-config.yaml"]
    found: list[dict[str, Any]] = yaml.safe_load(text)["extenders"]
    return found


def enabling(*plugins: str) -> Values:
    enabled = [{"name": name} for name in plugins]
    return {"policy": {"profiles": [{"plugins": {"multiPoint": {"enabled": enabled}}}]}}


def verbs(entry: dict[str, Any]) -> list[str]:
    return [verb for verb in VERBS if f"{verb}Verb" in entry]


def all_verbs(found: list[dict[str, Any]]) -> list[str]:
    return [verb for entry in found for verb in verbs(entry)]


def test_kube_scheduler_calls_the_verbs_that_the_policy_needs() -> None:
    # Two plugins at a time, so that Helm does not have to run for each.
    known = names()
    for pair in zip(known[::2], known[1::2], strict=False):
        assert all_verbs(entries(enabling(*pair))) == verbs_of(pair), pair


def test_binds_have_an_entry_of_their_own_that_is_never_ignorable() -> None:
    values = {**enabling("OneNodePerPipelineRun"), "extender": {"ignorable": True}}
    cycles, binds = entries(values)
    assert (verbs(cycles), cycles["ignorable"]) == (["filter", "preempt"], True)
    assert (verbs(binds), binds["ignorable"]) == (["bind"], False)
    assert binds["tlsConfig"] == cycles["tlsConfig"]


@pytest.mark.parametrize("scale", [10, 100, 1000])
def test_the_weight_is_the_one_that_the_command_prints(scale: int) -> None:
    profiles = enabling("ImageLocality")["policy"]["profiles"]
    (entry,) = entries({"policy": {"scoreScale": scale, "profiles": profiles}})
    assert entry["weight"] == extender_weight(scale)


def test_plugins_that_the_chart_does_not_know_may_need_every_verb() -> None:
    assert all_verbs(entries(enabling("OfMyOwn"))) == list(VERBS)


CONTROL_PLANE = "layout: control-plane, gateway: {clusterIP: 10.96.0.9}"
PROFILE = "policy: {profiles: [{%s}]}"
OF_PROFILE = "'/policy/profiles/0"
WRONG = {
    "nonsense: 1": "'': additional properties 'nonsense' not allowed",
    "imagePullSecrets: [a]": "'imagePullSecrets' not allowed",
    "filter: null": "missing property 'filter'",
    "layout: own": "'/layout': value must be one of",
    "schedulerName: My Scheduler": "'/schedulerName'",
    "image: {repository: 'example.com/moorage:1'}": "'/image/repository'",
    "image: {tag: a b}": "'/image/tag'",
    "image: {tag: 1.5}": "'/image/tag': got number",
    "image: {pullSecrets: [{name: a}]}": "'/image/pullSecrets/0': got object",
    "policy: {profiles: []}": "'/policy/profiles': minItems",
    PROFILE % "plugin: {}": f"{OF_PROFILE}'",
    PROFILE % "plugins: {filter: {enabled: [A]}}": f"{OF_PROFILE}/plugins/filter/enabled/0'",
    PROFILE % "pluginConfig: [{name: A, arg: {}}]": f"{OF_PROFILE}/pluginConfig/0': ",
    PROFILE % "shadow: {plugins: {bind: {}}}": f"{OF_PROFILE}/shadow/plugins'",
    "policy: {profiles: [{}, {schedulerName: moorage}]}": "two of them have the schedulerName moo",
    "plugins: {rule: x}": "invalid propertyName 'rule'",
    "extender: {httpTimeout: 5}": "'/extender/httpTimeout': got number",
    "extender: {url: 'http://gateway:8888'}": "'/extender/url'",
    "gateway: {replicas: 2}": "'/gateway': additional properties 'replicas'",
    "gateway: {args: --log-level=debug}": "'/gateway/args': got string",
    "gateway: {env: [{name: A, value: 1}]}": "'/gateway/env/0/value': got number",
    "gateway: {resources: {request: {cpu: 1}}}": "'/gateway/resources': additional properties 'req",
    "gateway: {resources: {limits: {memory: 1GB}}}": "'/gateway/resources/limits/memory'",
    "gateway: {clusterIP: 10.96.88.288}": "'/gateway/clusterIP'",
    "filter: {replicas: 0}": "'/filter/replicas': minimum",
    "scheduler: {env: [{name: A, value: b}]}": "'/scheduler': additional properties 'env'",
    "scheduler: {image: {tag: 1.36}}": "'/scheduler/image/tag': got number",
    "highAvailability: true": "'/highAvailability': got boolean",
    "tls: {source: certmanager}": "'/tls/source'",
    "placement: {nodeSelector: {pool: 1}}": "'/placement/nodeSelector/pool': got number",
    "placement: {tolerations: [{efect: NoExecute}]}": "'/placement/tolerations/0': additional",
    "networkPolicy: {apiServer: {addresses: []}}": "kubectl get endpointslices",
    "networkPolicy: {apiServer: {addresses: [10.0.0.1]}}": "'/networkPolicy/apiServer/addresses/0'",
    "networkPolicy: {dns: {addresses: [10.0.0.1/99]}}": "'/networkPolicy/dns/addresses/0'",
    "networkPolicy: {extraEgress: [{too: []}]}": "'/networkPolicy/extraEgress/0'",
    "admission: {boundNamespaces: ['team-*']}": "'/admission/boundNamespaces/0'",
    "admission: {enabled: false, boundNamespaces: [a]}": "boundNamespaces needs admission.enabled",
    "admission: {enabled: false}, gate: {enabled: true}": "gate.enabled needs admission.enabled",
    "autoscaling: {scorer: {enabled: true, minReplicas: 8}}": "minReplicas is 8, which is more",
    "pluginReads: [{kind: Rack}]": "'/pluginReads/0': missing property 'resource'",
    "annotator: {prometheus: 'prometheus:9090'}": "'/annotator/prometheus'",
    "monitoring: {runbooks: 'https://example.com'}": "'/monitoring/runbooks'",
    "layout: control-plane": "gateway.clusterIP: layout control-plane needs",
    "layout: sidecar, highAvailability: {enabled: true}": "highAvailability.enabled:",
    "controlPlane: {ownPods: plain-scheduler}": "controlPlane.ownPods is for layout control-plane",
    f"{CONTROL_PLANE}, {PROFILE % 'plugins: {bind: {enabled: [{name: A}]}}'}": "pod, for A",
    CONTROL_PLANE + ", extender: {entries: [{urlPrefix: a, bindVerb: bind}]}": "extender.entries",
}
"""Values, and where the sentence says that the mistake is."""


@pytest.mark.parametrize("values", WRONG)
def test_a_wrong_value_is_refused_with_its_place(values: str) -> None:
    with pytest.raises(ValueError, match=re.escape(WRONG[values])):
        rendered(yaml.safe_load(f"{{{values}}}"))


def test_the_tag_of_the_installation_page_is_a_number_for_helm() -> None:
    command = [str(find("helm")), "template", "moorage", str(CHART), "--set", "image.tag=1"]
    command += ["--set", "networkPolicy.apiServer.addresses={10.0.0.1/32}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert "image: moorage:1\n" in done.stdout, done.stderr


def test_own_pods_never_wait_for_moorage() -> None:
    for name, values in layouts().items():
        for manifest in render(values):
            if manifest["kind"] == "Deployment" and manifest["metadata"]["namespace"] == "moorage":
                own = pod_spec(manifest)["schedulerName"]
                assert own in ("default-scheduler", "plain-scheduler"), name


def test_the_gateway_may_read_more_only_for_the_plugin_that_needs_it() -> None:
    manifests = render({"statefulSets": {"enabled": True}})
    name = "moorage-gateway-stateful-sets"
    assert rules(manifests, "ClusterRole", name) == {
        (kind.group, kind.plural, verb, "")
        for kind in StatefulSetZone.reads
        for verb in ("list", "watch")
    }
    binding = one(manifests, "ClusterRoleBinding", name)
    assert binding["roleRef"]["name"] == name
    gateway = one(manifests, "ClusterRoleBinding", "moorage-gateway")
    assert binding["subjects"] == gateway["subjects"]


def test_the_gateway_may_read_what_plugins_of_ones_own_name() -> None:
    prices = {"resource": "configmaps", "namespace": "prices", "names": ["spot"]}
    racks = {"apiGroup": "example.com", "resource": "racks"}
    for layout in ("second-scheduler", "sidecar"):
        manifests = render({"layout": layout, "pluginReads": [prices, racks]})
        role = one(manifests, "Role", "moorage-gateway-reads-0")
        assert role["metadata"]["namespace"] == "prices"
        assert role["rules"] == [
            {
                "apiGroups": [""],
                "resources": ["configmaps"],
                "resourceNames": ["spot"],
                "verbs": ["list", "watch"],
            }
        ]
        (rule,) = one(manifests, "ClusterRole", "moorage-gateway-reads-1")["rules"]
        assert rule == {
            "apiGroups": ["example.com"],
            "resources": ["racks"],
            "verbs": ["list", "watch"],
        }
        gateway = one(manifests, "ClusterRoleBinding", "moorage-gateway")
        for kind, number in (("RoleBinding", 0), ("ClusterRoleBinding", 1)):
            binding = one(manifests, kind, f"moorage-gateway-reads-{number}")
            assert binding["subjects"] == gateway["subjects"]
            assert binding["roleRef"]["kind"] == kind.removesuffix("Binding")


def test_plugins_find_files_where_the_values_mount_them() -> None:
    volume = {"name": "prices", "configMap": {"name": "prices"}}
    mount = {"name": "prices", "mountPath": "/etc/moorage/prices", "readOnly": True}
    for name in ("filter", "scorer", "binder"):
        values = {name: {"extraVolumes": [volume], "extraVolumeMounts": [mount]}}
        spec = pod_spec(one(render(values), "Deployment", name))
        assert volume in spec["volumes"]
        (container,) = spec["containers"]
        assert mount in container["volumeMounts"]
        assert {"tmp", "tls"} < {each["name"] for each in spec["volumes"]}


def test_the_api_server_is_where_the_values_say() -> None:
    values = {"networkPolicy": {"apiServer": {"addresses": ["10.0.0.1/32"], "ports": [6443]}}}
    binder = one(render(values), "NetworkPolicy", "binder")
    assert binder["spec"]["egress"] == [
        {
            "to": [{"ipBlock": {"cidr": "10.0.0.1/32"}}],
            "ports": [{"protocol": "TCP", "port": 6443}],
        }
    ]


@pytest.mark.parametrize(
    ("people", "metrics", "accounts"),
    [
        (True, False, ["gateway"]),
        (True, True, ["gateway", "binder"]),
        (False, True, ["gateway", "binder"]),
        (False, False, []),
    ],
)
def test_only_who_reads_bearer_tokens_may_ask_about_them(
    people: bool, metrics: bool, accounts: list[str]
) -> None:
    manifests = render({"bearerTokens": {"people": people, "metrics": metrics}})
    names = {each["metadata"]["name"]: each for each in manifests}
    found = names.get("moorage-auth-delegator", {"subjects": []})["subjects"]
    assert [each["name"] for each in found] == accounts
    kinds = {m["metadata"]["name"] for m in manifests if m["kind"] == "ClusterRole"}
    assert ("moorage-metrics" in kinds, "moorage-decisions" in kinds) == (metrics, people)


def test_the_api_server_checks_from_kubernetes_1_30_on_and_knows_all_profiles() -> None:
    profiles = [{"schedulerName": "a"}, {"plugins": {}}]
    policy = one(
        render({"policy": {"profiles": profiles}}),
        "ValidatingAdmissionPolicy",
        "moorage-binder-status",
    )
    first, *_ = policy["spec"]["validations"]
    assert first["expression"] == 'object.spec.schedulerName in ["a","moorage"]'
    kinds = {each["kind"] for each in render({"admission": {"enabled": False}})}
    assert "ValidatingAdmissionPolicy" not in kinds


@pytest.mark.parametrize(
    ("values", "where"),
    [
        ({}, '!(request.namespace in ["moorage","kube-system"])'),
        ({"admission": {"boundNamespaces": ["a", "b"]}}, 'request.namespace in ["a","b"]'),
        (
            {"admission": {"boundNamespaces": ["a"]}, "demo": {"enabled": True}},
            'request.namespace in ["a","moorage-demo"]',
        ),
        (
            {"layout": "control-plane", "gateway": {"clusterIP": "10.96.0.9"}},
            '!(request.namespace in ["moorage"])',
        ),
    ],
)
def test_the_binder_binds_where_its_scheduler_places_pods(values: Values, where: str) -> None:
    policy = one(render(values), "ValidatingAdmissionPolicy", "moorage-binder-binds")
    first, *_ = policy["spec"]["validations"]
    of_test = "(request.namespace == 'moorage' && object.metadata.name == 'test')"
    assert first["expression"] == f"{where} || {of_test}"
    (hook,) = (each for each in helm_test({}) if each["kind"] == "Pod")
    assert hook["metadata"]["name"] == "test"


def test_the_account_of_a_gateway_beside_kube_scheduler_is_not_held_to_the_gateways_work() -> None:
    manifests = render({"layout": "sidecar"})
    held = [each["spec"].get("matchConditions", "") for each in manifests if "spec" in each]
    assert ":binder'" in str(held)
    assert ":scheduler'" not in str(held)


def test_every_container_of_every_option_passes_the_restricted_profile() -> None:
    names = ("gate", "capacity", "annotator")
    values = {"shadow": {"replicas": 1}, **{name: {"enabled": True} for name in names}}
    found = restricted([*render(values), *helm_test({})])
    assert {*names, "shadow-filter", "shadow-scorer", "test"} < set(found)


def test_network_policies_can_be_left_out() -> None:
    kinds = {each["kind"] for each in render({"networkPolicy": {"enabled": False}})}
    assert "Deployment" in kinds
    assert "NetworkPolicy" not in kinds


def test_replicas_of_shadows_are_asked_by_the_gateway_with_the_plugins_of_the_others() -> None:
    values: Values = {
        "shadow": {"replicas": 3},
        "plugins": {"a.py": ""},
        "autoscaling": {"scorer": {"enabled": True}},
        "monitoring": {"enabled": True},
        "tls": {"source": "cert-manager"},
    }
    manifests = render(values)
    names = {(each["kind"], each["metadata"]["name"]) for each in manifests}
    assert len(names) == len(manifests)
    (gateway,) = pod_spec(one(manifests, "Deployment", "gateway"))["containers"]
    secured = {
        each["metadata"]["name"]: each["spec"]["podMetricsEndpoints"][0]["tlsConfig"]["serverName"]
        for each in manifests
        if each["kind"] == "PodMonitor"
    }
    (policy,) = one(manifests, "NetworkPolicy", "services")["spec"]["podSelector"].values()
    for kind in ("filter", "scorer"):
        own = one(manifests, "Deployment", f"shadow-{kind}")
        live = one(manifests, "Deployment", kind)
        assert own["spec"]["replicas"] == 3
        assert pod_spec(own)["containers"] == pod_spec(live)["containers"]
        assert pod_spec(own)["serviceAccountName"] == kind
        (tls,) = (each for each in pod_spec(own)["volumes"] if each["name"] == "tls")
        assert tls["secret"]["secretName"] == f"shadow-{kind}-tls"
        certificate = one(manifests, "Certificate", f"shadow-{kind}")["spec"]
        assert set(certificate["dnsNames"]) == {*identities()[f"shadow-{kind}"]} - {*HERE}
        assert secured[f"shadow-{kind}"] == f"moorage-shadow-{kind}"
        selector = one(manifests, "Service", f"shadow-{kind}")["spec"]["selector"]
        assert selector == own["spec"]["selector"]["matchLabels"]
        assert selector != one(manifests, "Service", kind)["spec"]["selector"]
        assert f"--shadow-{kind}=dns:///shadow-{kind}:50051" in gateway["args"]
        assert f"shadow-{kind}" in policy[0]["values"]
    assert "shadow-filter" not in str(render({}))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_there_only_if_it_is_wanted(name: str) -> None:
    for layout in layouts():
        objects = yaml.safe_load_all((INSTALL / f"{layout}.yaml").read_text())
        assert not [each for each in objects if name in each["metadata"]["name"].split("-")]


@pytest.mark.parametrize("layout", ["second-scheduler", "sidecar", "control-plane"])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_reaches_the_gateway_with_a_token_that_it_is_asked_about(
    name: str, layout: str
) -> None:
    values: Values = {
        "layout": layout,
        "gateway": {"clusterIP": "10.96.0.9" if layout == "control-plane" else ""},
        name: {"enabled": True},
        "bearerTokens": {"people": False},
    }
    manifests = render(values)
    names = [(each["kind"], each["metadata"]["name"]) for each in manifests]
    assert len(set(names)) == len(names)
    spec = pod_spec(one(manifests, "Deployment", name))
    (container,) = spec["containers"]
    assert container["command"] == ["moorage", name]
    args = [each for each in container["args"] if "ca-file" not in each]
    with COMMANDS[name].make_context(name, args):
        pass  # it knows its options
    assert "--admin=https://gateway.moorage.svc:9090" in container["args"]
    host = "gateway.moorage.svc"
    assert any(fnmatch(host, each) for each in GatewaySettings().allowed_host)
    service = one(manifests, "Service", "gateway")["spec"]
    assert 9090 in [port["port"] for port in service["ports"]]
    (volume,) = spec["volumes"]
    assert volume["secret"]["items"] == [{"key": "ca.crt", "path": "ca.crt"}]  # never the key
    whose = one(manifests, "ClusterRoleBinding", "moorage-auth-delegator")["subjects"]
    assert whose == one(manifests, "ClusterRoleBinding", "moorage-gateway")["subjects"]
    ingress = one(manifests, "NetworkPolicy", f"{name}-to-gateway")["spec"]
    assert ingress["ingress"][0]["from"] == [
        {"podSelector": {"matchLabels": {"app.kubernetes.io/name": name}}}
    ]
    assert service["selector"] == ingress["podSelector"]["matchLabels"]
