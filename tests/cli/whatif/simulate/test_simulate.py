"""`moorage simulate` on files: where pods go, what differs, what stays pending, and bad input."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from tests.cli.support import Object, dump, invoked, pod
from tools.planes.objects import node

POLICY = {"apiVersion": "moorage.io/v1alpha1", "kind": "MoorageConfiguration"}


def policy(*plugins: str, **arguments: Object) -> Object:
    """Return a policy whose profile enables some plugins."""
    enabled = {"multiPoint": {"enabled": [{"name": name} for name in plugins]}}
    config = [{"name": name, "args": args} for name, args in arguments.items()]
    profile = {"schedulerName": "moorage", "plugins": enabled, "pluginConfig": config}
    return {**POLICY, "profiles": [profile]}


def sized(name: str, cpu: str, **spec: Any) -> Object:
    """Return a pod that requests CPU."""
    made = pod(name, **spec)
    made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    return made


class Files:
    """Runs the command on files in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, name: str, *documents: Object) -> Path:
        file = self.folder / name
        as_json = file.suffix == ".json"
        file.write_text(json.dumps(*documents) if as_json else yaml.safe_dump_all(documents))
        return file

    def configuration(self, extender: Object, **fields: Any) -> Path:
        """Write a configuration of kube-scheduler with an entry for the extender."""
        head = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
        }
        entry = {"urlPrefix": "http://h:1", **extender}
        return self.write("config.yaml", {**head, **fields, "extenders": [entry]})

    def run(self, *arguments: object) -> Result:
        given = (f"--cluster={self.folder}/dump.json", f"--pods={self.folder}/pods.yaml")
        return invoked("simulate", *given, *arguments)

    def json(self, *arguments: object) -> Any:
        result = self.run("-o", "json", *arguments)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def places(answer: Any, index: int = 0) -> dict[str, str]:
    return {each["pod"]: each["node"] for each in answer["policies"][index]["placements"]}


def test_in_tree_rules_alone_place_pods_beside_those_that_are_there(files: Files) -> None:
    there = sized("there", "7", nodeName="n1")
    files.write("dump.json", dump(node("n1"), node("n2"), there))
    files.write("pods.yaml", sized("a", "6"), sized("b", "1"), sized("c", "6"))
    answer = files.json()
    assert places(answer) == {"default/a": "n2", "default/b": "n2", "default/c": ""}
    (pending,) = (each for each in answer["policies"][0]["placements"] if not each["node"])
    assert pending["reason"] == "0/2 nodes: 2 Insufficient cpu (NodeResourcesFit)"


def test_two_policies_differ_by_the_plugins_that_are_named(files: Files) -> None:
    there = sized("there", "2", nodeName="full")
    files.write("dump.json", dump(node("full"), node("empty"), there))
    files.write("pods.yaml", sized("web", "1"))
    spread = files.write("spread.yaml", policy("NodeResourcesLeastAllocated"))
    pack = files.write("pack.yaml", policy("NodeResourcesMostAllocated"))
    answer = files.json("--config", spread, "--config", pack)
    assert [places(answer, i) for i in (0, 1)] == [
        {"default/web": "empty"},
        {"default/web": "full"},
    ]
    assert answer["moved"] == ["default/web"]
    why = answer["policies"][1]["placements"][0]["whyNotThere"]
    assert "points ahead of empty: NodeResourcesMostAllocated +" in why
    assert "in-tree NodeResourcesFit -" in why
    text = files.run("--config", spread, "--config", pack).stdout
    assert "Placed differently: 1 of 1 pods" in text
    assert "nodes used" in text


def test_more_nodes_are_compared_with_the_cluster_as_it_is(files: Files) -> None:
    labels = {"kubernetes.io/hostname": "small", "disk": "ssd"}
    small = (node(name, cpu="2", labels=labels) for name in ("small", "small-1"))
    cordoned = [node(f"old-{number}") for number in range(3)]
    for each in cordoned:
        each["spec"] = {"unschedulable": True}
    files.write("dump.json", dump(node("n1"), *small, *cordoned))
    files.write("pods.yaml", sized("web", "2", nodeSelector={"disk": "ssd"}))
    answer = files.json("--count", 4, "--nodes", "+2")
    without, larger = answer["policies"]
    assert [each["placed"] for each in (without, larger)] == [2, 4]
    assert larger["notes"][0] == "2 more nodes like small: small-2 to small-3"
    assert set(places(answer, 1).values()) == {"small", "small-1", "small-2", "small-3"}
    text = files.run("--count", 4, "--nodes", "+2").stdout
    assert re.search(r"pods pending +2 +0\n", text)
    assert "Note: B: 2 more nodes like small: small-2 to small-3\n" in text
    assert files.run("--nodes", "more").exit_code == 2


def test_a_plugin_that_rejects_nodes_is_the_reason(files: Files) -> None:
    (files.folder / "hot.py").write_text(
        "from moorage import FilterPlugin, Rejection\n\n\n"
        "class MaxTemperature(FilterPlugin):\n"
        "    def filter_node(self, pod, node):\n"
        "        return Rejection('node is too hot') if 'hot' in node.labels else None\n"
    )
    files.write("dump.json", dump(node("n1", labels={"hot": ""}), node("n2", labels={"hot": ""})))
    files.write("pods.yaml", pod("web"))
    plugin = ("--plugin", files.folder / "hot.py")
    answer = files.json(*plugin)
    (placement,) = answer["policies"][0]["placements"]
    assert placement["reason"] == "0/2 nodes: 2 node is too hot (MaxTemperature)"
    none = files.write("none.yaml", POLICY)
    answer = files.json(
        *plugin, "--config", none, "--config", files.write("hot.yaml", policy("MaxTemperature"))
    )
    assert [bool(places(answer, i)["default/web"]) for i in (0, 1)] == [True, False]
    assert answer["moved"] == ["default/web"]


@pytest.mark.parametrize("place", ["dump", "pods"])
def test_priority_classes_count_wherever_they_are_given(files: Files, place: str) -> None:
    boss, classes = sized("boss", "3", priorityClassName="boss"), [CLASS]
    files.write("dump.json", dump(node("n1"), *(classes if place == "dump" else [])))
    files.write("pods.yaml", sized("a", "3"), boss, *(classes if place == "pods" else []))
    answer = files.json("--count", 2)
    pending = {"default/a-0": "", "default/a-1": ""}
    assert places(answer) == pending | {"default/boss-0": "n1", "default/boss-1": "n1"}
    assert answer["notes"] == []


@pytest.mark.parametrize(
    ("kind", "uses"),
    [
        (
            "PersistentVolumeClaim",
            {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]},
        ),
        ("ResourceClaim", {"resourceClaims": [{"name": "v", "resourceClaimName": "data"}]}),
        (
            "ResourceClaimTemplate",
            {"resourceClaims": [{"name": "v", "resourceClaimTemplateName": "data"}]},
        ),
    ],
)
@pytest.mark.parametrize("place", ["", "dump", "pods"])
def test_a_claim_that_is_not_there_is_worth_a_note(
    files: Files, kind: str, uses: Object, place: str
) -> None:
    claim = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "data"}}
    files.write("dump.json", dump(node("n1"), *([claim] if place == "dump" else [])))
    files.write("pods.yaml", pod("web", **uses), *([claim] if place == "pods" else []))
    answer = files.json()
    notes = [note for note in answer["notes"] if f"default/web ({kind} default/data)" in note]
    assert bool(notes) == (place == "")
    assert answer["policies"][0]["placed"] == 1


@pytest.mark.parametrize("claims", [5, ["x"], [{}], [{"name": 5}]])
def test_malformed_claims_end_in_no_traceback(files: Files, claims: object) -> None:
    files.write("dump.json", dump(node("n1")))
    files.write("pods.yaml", pod("web", resourceClaims=claims))
    assert files.json()["policies"][0]["placed"] == 1


READING = """
from moorage import BindPlugin, FilterPlugin, ObjectKind

class Reads(FilterPlugin):
    reads = (ObjectKind("v1", "pods", label_selector="job"), ObjectKind("batch/v1", "jobs"))
    def filter_node(self, pod, node):
        return None

class Binds(BindPlugin):
    reads = (ObjectKind("v1", "secrets"),)
    reads_snapshot = True
    async def pre_bind(self, binding):
        return None
"""


@pytest.mark.parametrize("dumped", [False, True])
def test_only_kinds_that_a_simulated_plugin_reads_and_the_dump_lacks_are_asked_for(
    files: Files, dumped: bool
) -> None:
    (files.folder / "reading.py").write_text(READING)
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}}
    files.write("dump.json", dump(node("n1"), *([job] if dumped else [])))
    files.write("pods.yaml", pod("web"))
    config = policy("Reads")
    config["profiles"][0]["plugins"]["bind"] = {"enabled": [{"name": "Binds"}]}
    given = ("--plugin", files.folder / "reading.py", "--config", files.write("a.yaml", config))
    notes = [note for note in files.json(*given)["notes"] if "reads" in note]
    command = "kubectl get nodes,pods,jobs.batch -A -o json"
    where = files.folder / "dump.json"
    asked = f"Reads reads jobs.batch, of which {where} has none; a dump with them: {command}"
    assert notes == ([] if dumped else [asked])


def test_a_dump_given_as_pods_too_is_placed_again(files: Files) -> None:
    pods = (sized(f"p{i}", "2", nodeName="n1") for i in range(4))
    files.write("dump.json", dump(node("n1"), node("n2"), *pods))
    (files.folder / "pods.yaml").write_text((files.folder / "dump.json").read_text())
    answer = files.json()
    assert sorted(places(answer).values()) == ["n1", "n1", "n2", "n2"]
    assert answer["before"]["resources"]["cpu"]["used"] == 0


def test_the_same_pods_are_placed_alike(files: Files) -> None:
    files.write("dump.json", dump(*(node(f"n{i}") for i in range(20))))
    files.write("pods.yaml", sized("a", "1"), sized("b", "2"))
    config = files.write("a.yaml", policy("NodeResourcesLeastAllocated"))
    one, other = (places(files.json("--count", 10, "--config", config)) for _ in range(2))
    assert one == other
    assert len(set(one.values())) > 10
    answer = files.json("--count", 10, "--config", config, "--config", config)
    assert answer["moved"] == []


def test_pods_of_a_run_claim_one_node_as_with_the_gateway(files: Files) -> None:
    files.write("dump.json", dump(*(node(f"n{i}") for i in range(4))))
    task = sized("task", "1")
    task["metadata"]["labels"] = {"tekton.dev/pipelineRun": "run"}
    files.write("pods.yaml", task)
    config = files.write("a.yaml", policy("OneNodePerPipelineRun"))
    answer = files.json("--count", 4, "--config", config)
    assert len(set(places(answer).values())) == 1
    assert answer["policies"][0]["placements"][0]["claimants"] == ["OneNodePerPipelineRun"]
    tasks = [sized(f"task-{i}", "1") for i in range(6)]
    for i, each in enumerate(tasks):
        each["metadata"]["labels"] = {"tekton.dev/pipelineRun": f"run-{i}"}
    files.write("pods.yaml", *tasks)
    other = files.write("b.yaml", policy("NodeResourcesMostAllocated"))
    placed = files.json("--config", other, "--config", config)["policies"][1]["placements"]
    why = [each["whyNotThere"] for each in placed if "whyNotThere" in each]
    assert why
    assert all(re.search("PipelineRun, with as many points as n.: by lot$", each) for each in why)


FAILING = """
from moorage import FilterPlugin, ScorePlugin


class Raises(FilterPlugin):
    def filter_node(self, pod, node):
        raise ValueError("no thermometer")


class RaisesInScore(ScorePlugin):
    def score_node(self, pod, node):
        raise KeyError("no data")
"""


def test_plugins_that_fail_do_what_they_do_in_a_cluster(files: Files) -> None:
    """A filter plugin fails the attempt; the scores go on without a score plugin."""
    (files.folder / "failing.py").write_text(FAILING)
    files.write("dump.json", dump(node("n1"), node("n2")))
    files.write("pods.yaml", pod("a"), pod("b"))
    plugin = ("--plugin", files.folder / "failing.py")
    filtering = files.json(*plugin, "--config", files.write("a.yaml", policy("Raises")))
    (reason,) = {each["reason"] for each in filtering["policies"][0]["placements"]}
    assert "plugin Raises failed in filter_node: ValueError: no thermometer" in reason
    scoring = files.json(*plugin, "--config", files.write("b.yaml", policy("RaisesInScore")))
    assert all(places(scoring).values())
    assert any("RaisesInScore was left out" in note for note in scoring["policies"][0]["notes"])


NOTING = """
from moorage import FilterPlugin


class Notes(FilterPlugin):
    def filter_node(self, pod, node):
        self.note("of 2 nodes one has no time" if pod.name < "c" else f"about {pod.name}")
"""


def test_notes_of_plugins_are_counted_and_bounded(files: Files) -> None:
    (files.folder / "noting.py").write_text(NOTING)
    files.write("dump.json", dump(node("n1"), node("n2")))
    files.write("pods.yaml", pod("a"), pod("b"), *(pod(f"c{i}") for i in range(40)))
    config = files.write("a.yaml", policy("Notes"))
    answer = files.json("--plugin", files.folder / "noting.py", "--config", config)
    notes = [note for note in answer["policies"][0]["notes"] if "Notes notes" in note]
    assert notes[0] == "2 x Notes notes: of 2 nodes one has no time"
    assert len(notes) == 20


def test_a_gated_pod_stays_pending_and_finished_ones_are_left_out(files: Files) -> None:
    files.write(
        "dump.json",
        dump(node("n1"), {**pod("done", nodeName="n1"), "status": {"phase": "Succeeded"}}),
    )
    gated = pod("gated", schedulingGates=[{"name": "example.com/quota"}])
    finished = {**pod("finished"), "status": {"phase": "Failed"}}
    files.write("pods.yaml", gated, finished)
    answer = files.json()
    (placement,) = answer["policies"][0]["placements"]
    assert placement == {
        "pod": "default/gated",
        "node": "",
        "reason": "it has scheduling gates: example.com/quota",
    }
    assert answer["before"]["resources"]["pods"]["used"] == 0
    assert any("1 left out, Pod: finished" in note for note in answer["notes"])


@pytest.mark.parametrize(("spec", "taken"), [({"nodeName": "n"}, 1), ({}, 0)])
def test_only_pods_on_nodes_are_said_to_be_taken_off(
    files: Files, spec: Object, taken: int
) -> None:
    files.write("dump.json", dump(node("n"), pod("p", **spec)))
    files.write("pods.yaml", pod("p"))
    notes = files.json()["notes"]
    assert sum("are taken off their nodes" in note for note in notes) == taken


PACKED: Object = {
    "plugins": {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit"}]}},
    "pluginConfig": [
        {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}
    ],
}
"""A profile that puts pods where others are."""

SAME = "default-scheduler"


@pytest.mark.parametrize(
    ("profiles", "policy_name", "chosen", "noted"),
    [
        ({"profiles": [{"schedulerName": SAME, **PACKED}]}, SAME, "used", 0),
        ({"profiles": [PACKED]}, SAME, "used", 0),
        ({"profiles": [{"schedulerName": SAME, **PACKED}]}, "moorage", "used", 2),
        ({"profiles": [PACKED]}, "moorage", "used", 2),
        ({"profiles": [{"schedulerName": "moorage", **PACKED}]}, "moorage", "used", 0),
        ({"profiles": [{"schedulerName": "other", **PACKED}]}, "moorage", "used", 2),
        ({"profiles": [{}]}, SAME, "empty", 0),
        ({"profiles": []}, SAME, "empty", 0),
        ({"profiles": None}, "moorage", "empty", 2),
        ({}, SAME, "empty", 0),
    ],
)
def test_a_given_configuration_is_used_as_kube_scheduler_uses_it(
    files: Files, profiles: Object, policy_name: str, chosen: str, noted: int
) -> None:
    config = files.configuration({"filterVerb": "filter", "nodeCacheCapable": True}, **profiles)
    ours = files.write("policy.yaml", {**POLICY, "profiles": [{"schedulerName": policy_name}]})
    files.write("dump.json", dump(node("used"), node("empty"), sized("old", "4", nodeName="used")))
    files.write("pods.yaml", sized("new", "1"))
    answer = files.json(f"--scheduler-config={config}", f"--config={ours}")
    assert places(answer) == {"default/new": chosen}
    notes = [note for note in answer["policies"][0]["notes"] if "has no profile" in note]
    assert len(notes) == noted


@pytest.mark.parametrize(
    ("verbs", "chosen"),
    [
        ({"filterVerb": "f", "prioritizeVerb": "p", "weight": 15}, "best"),
        ({"filterVerb": "f", "weight": 15}, "passes"),
        ({"prioritizeVerb": "p", "weight": 15}, "rejected"),
    ],
)
def test_what_kube_scheduler_would_not_ask_does_not_count(
    files: Files, verbs: Object, chosen: str
) -> None:
    plugin = files.folder / "plugin.py"
    plugin.write_text(SIDES)
    config = files.configuration(verbs, profiles=[{"schedulerName": "moorage"}])
    others = (sized(f"on-{name}", "4", nodeName=name) for name in ("rejected", "best"))
    files.write("dump.json", dump(*map(node, ("rejected", "passes", "best")), *others))
    files.write("pods.yaml", sized("p", "1"))
    answer = files.json(f"--scheduler-config={config}", f"--plugin={plugin}")
    (place,) = places(answer).values()
    assert place == chosen


SIDES = """
from moorage import FilterPlugin, Node, Pod, Rejection, ScorePlugin


class Sides(FilterPlugin):
    \"\"\"One node may not be used.\"\"\"

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        return Rejection("taken") if node.name == "rejected" else None


class Best(ScorePlugin):
    \"\"\"One node is best; of the others, the one that may not be used.\"\"\"

    def score_node(self, pod: Pod, node: Node) -> float:
        return {"best": 50, "rejected": 100}.get(node.name, 0)
"""


BAD: dict[str, tuple[str, str, str]] = {
    "the dump is no JSON": ('{"kind": "List",\n "items": [}', "", "dump.json:2: not JSON"),
    "the dump has no nodes": (
        '{"kind": "List", "items": []}', "", "dump.json: there is no node in it: write it with"
    ),
    "a node is malformed": (
        json.dumps(dump({**node("n"), "spec": {"taints": 5}})), "",
        "dump.json: document 1: items[0]: node n: Expected `array`, got `int` - at `$.spec.taints`",
    ),
    "a quantity is none": (
        json.dumps(dump({**node("n"), "status": {"allocatable": {"cpu": "much"}}})), "",
        "items[0]: node n: ",
    ),
    "a pod is malformed": (
        "", "kind: Pod\nmetadata: {name: p}\nspec: {containers: [5]}",
        ("pods.yaml: document 1: pod default/p: Expected `object`, got `int` - at "
        "`$.spec.containers[0]`"),
    ),
    "a pod would be refused": (
        "", "kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: main}]}",
        "pods.yaml: document 1: pod default/p: spec.containers[0].image: Required value",
    ),
    "the YAML is broken": ("", "kind: Pod\nmetadata: [", "pods.yaml:3: not YAML"),
    "there is no pod": ("", "kind: Node\nmetadata: {name: n}", "pods.yaml: there is no pod"),
    "a pod is there twice": (
        "", yaml.safe_dump_all([pod("p"), pod("p")]), "Pod default/p is there twice"
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_what_is_wrong_with_a_file_is_one_line_with_its_place(files: Files, what: str) -> None:
    cluster, pods, message = BAD[what]
    (files.folder / "dump.json").write_text(cluster or json.dumps(dump(node("n"))))
    (files.folder / "pods.yaml").write_text(pods or yaml.safe_dump(pod("p")))
    result = files.run()
    assert result.exit_code == 1
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


CLASS = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "boss"},
    "value": 1000,
}


def test_a_pod_of_higher_priority_evicts_as_kube_scheduler_does(files: Files) -> None:
    full = [sized(f"there-{name}", "7", nodeName=name) for name in ("n1", "n2")]
    full[0]["spec"]["priority"] = 5
    files.write("dump.json", dump(node("n1"), node("n2"), *full, CLASS))
    files.write("pods.yaml", sized("small", "1"), sized("boss", "4", priorityClassName="boss"))
    answer = files.json()
    assert places(answer) == {"default/small": "n2", "default/boss": "n2"}
    note = "evicted to make room for pods of higher priority: default/there-n2 for default/boss"
    assert note in answer["policies"][0]["notes"]


def test_a_pod_that_just_got_its_node_can_be_evicted(files: Files) -> None:
    """The more important one comes first, and fits nowhere until the other has made a place."""
    near = {"labelSelector": {"matchLabels": {"app": "first"}}, "topologyKey": "host"}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]}}
    boss = sized("boss", "4", priorityClassName="boss", affinity=affinity)
    first, second = sized("first", "4"), sized("second", "4")
    first["metadata"]["labels"] = {"app": "first"}
    first["spec"]["priorityClassName"] = "boss"
    boss["metadata"]["labels"] = {"app": "boss"}
    files.write("dump.json", dump(node("n1", labels={"host": "n1"}), CLASS))
    files.write("pods.yaml", boss, second, first)
    placed = files.json()["policies"][0]["placements"]
    assert [each["node"] for each in placed] == ["n1", "", "n1"]
    assert placed[1]["reason"] == "it was evicted to make room for default/boss"


def test_a_node_that_a_plugin_rejects_without_the_victims_too_is_not_cleared(files: Files) -> None:
    (files.folder / "never.py").write_text(
        "from moorage import FilterPlugin, Rejection\n\n\n"
        "class NotOnFirst(FilterPlugin):\n"
        "    def filter_node(self, pod, node):\n"
        '        return Rejection("not here") if node.name == "n1" else None\n'
    )
    full = [sized(f"there-{name}", "7", nodeName=name) for name in ("n1", "n2")]
    full[1]["spec"]["priority"] = 5  # kube-scheduler alone would evict the other
    files.write("dump.json", dump(node("n1"), node("n2"), *full, CLASS))
    files.write("pods.yaml", sized("boss", "4", priorityClassName="boss"))
    assert places(files.json()) == {"default/boss": "n1"}
    answer = files.json("--plugin", files.folder / "never.py")
    assert places(answer) == {"default/boss": "n2"}
