"""What `moorage new-plugin` writes: six plugins that work, their tests, and a package.

`$plugin` stands for the class, `$module` for the file, `$project` for the package. Lines are short
enough for every formatter, and everything passes ruff and mypy as it is.
"""

from collections.abc import Mapping
from string import Template
from typing import Literal, TypeAlias

from cli.skeleton.bind import BIND, TEST_BIND
from cli.skeleton.permit import PERMIT, TEST_PERMIT
from cli.skeleton.project import POLICY, PYPROJECT, README

Kind: TypeAlias = Literal["filter", "score", "bind"]
Form: TypeAlias = Literal["node", "batch", "permit"]

_FILTER = '''\
"""The filter plugin $plugin."""

from typing import Annotated

from moorage import $imports

OTHER_GROUP = "node is of another group"  # constant: Kubernetes counts reasons


class $plugin(FilterPlugin):
    """Keeps pods with a group label on nodes with the same value of it."""

    class Args(Arguments):
        """The key of the label, the same on pods and nodes."""

        label: Annotated[str, Meta(min_length=1)] = "example.com/group"

'''

_FILTER_NODE = '''\
    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        """Return why the pod may not run on the node, or None if it may."""
        wanted = pod.labels.get(self.args.label)
        if wanted is None or node.labels.get(self.args.label) == wanted:
            return None
        return Rejection(OTHER_GROUP)
'''

_FILTER_BATCH = '''\
    def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
        """Reject the nodes on which the pod may not run."""
        verdicts = nodes.verdicts()  # all pass
        wanted = pod.labels.get(self.args.label)
        if wanted is not None:
            others = ~nodes.label(self.args.label).isin((wanted,))
            verdicts.reject(others, OTHER_GROUP)
        return verdicts
'''

_SCORE = '''\
"""The score plugin $plugin."""

from typing import Annotated

from moorage import $imports


class $plugin(ScorePlugin):
    """Prefers nodes with the same value of a group label as the pod."""

    class Args(Arguments):
        """The key of the label, the same on pods and nodes."""

        label: Annotated[str, Meta(min_length=1)] = "example.com/group"

'''

_SCORE_NODE = '''\
    def score_node(self, pod: Pod, node: Node) -> float:
        """Return how good the node is for the pod, from 0 to 100."""
        wanted = pod.labels.get(self.args.label)
        if wanted is None or node.labels.get(self.args.label) != wanted:
            return 0
        return MAX_SCORE
'''

_SCORE_BATCH = '''\
    def score(self, pod: Pod, nodes: Nodes) -> Scores:
        """Return how good each node is for the pod, from 0 to 100."""
        wanted = pod.labels.get(self.args.label, "")
        same = nodes.label(self.args.label).isin((wanted,))
        return MAX_SCORE * same.astype(float)
'''

_TEST_FILTER = '''\
"""The filter plugin $plugin."""

from moorage import Rejection
from moorage.testing import make_node, make_pod, run_filter

from $module import OTHER_GROUP, $plugin

NODES = (
    make_node("a", labels={"example.com/group": "a"}),
    make_node("b", labels={"example.com/group": "b"}),
)


def test_a_pod_of_a_group_stays_on_its_nodes() -> None:
    pod = make_pod(labels={"example.com/group": "a"})
    verdicts = run_filter($plugin(), pod, *NODES)
    assert verdicts == {"a": None, "b": Rejection(OTHER_GROUP)}


def test_a_pod_without_a_group_runs_anywhere() -> None:
    verdicts = run_filter($plugin(), make_pod(), *NODES)
    assert verdicts == {"a": None, "b": None}


def test_the_label_is_an_argument() -> None:
    pod = make_pod(labels={"example.com/group": "a"})
    args = $plugin.Args(label="example.com/team")
    verdicts = run_filter($plugin(args), pod, *NODES)
    assert verdicts == {"a": None, "b": None}
'''

_TEST_SCORE = '''\
"""The score plugin $plugin."""

from moorage.testing import make_node, make_pod, run_score

from $module import $plugin

NODES = (
    make_node("a", labels={"example.com/group": "a"}),
    make_node("b", labels={"example.com/group": "b"}),
)


def test_nodes_of_the_pod_s_group_are_preferred() -> None:
    pod = make_pod(labels={"example.com/group": "a"})
    scores = run_score($plugin(), pod, *NODES)
    assert scores == {"a": 100, "b": 0}


def test_a_pod_without_a_group_prefers_no_node() -> None:
    scores = run_score($plugin(), make_pod(), *NODES)
    assert scores == {"a": 0, "b": 0}


def test_the_label_is_an_argument() -> None:
    pod = make_pod(labels={"example.com/team": "b"})
    nodes = (make_node("a", labels={"example.com/team": "b"}), make_node("b"))
    args = $plugin.Args(label="example.com/team")
    scores = run_score($plugin(args), pod, *nodes)
    assert scores == {"a": 100, "b": 0}
'''

_IMPORTS: Mapping[tuple[Kind, Form], str] = {
    ("filter", "node"): "Arguments, FilterPlugin, Meta, Node, Pod, Rejection",
    ("filter", "batch"): "Arguments, FilterPlugin, Meta, Nodes, Pod, Verdicts",
    ("score", "node"): "MAX_SCORE, Arguments, Meta, Node, Pod, ScorePlugin",
    ("score", "batch"): "MAX_SCORE, Arguments, Meta, Nodes, Pod, ScorePlugin, Scores",
    ("bind", "node"): "Arguments, Binding, BindPlugin, Meta, Refusal",
    ("bind", "permit"): "Allow, Arguments, Binding, BindPlugin, Meta, Wait",
}
_CODE: Mapping[tuple[Kind, Form], str] = {
    ("filter", "node"): _FILTER + _FILTER_NODE,
    ("filter", "batch"): _FILTER + _FILTER_BATCH,
    ("score", "node"): _SCORE + _SCORE_NODE,
    ("score", "batch"): _SCORE + _SCORE_BATCH,
    ("bind", "node"): BIND,
    ("bind", "permit"): PERMIT,
}
_TESTS: Mapping[Kind, str] = {
    "filter": _TEST_FILTER,
    "score": _TEST_SCORE,
    "bind": TEST_BIND,
}


def project_name(module: str) -> str:
    """Return what the project with a module is called."""
    return module.replace("_", "-")


def texts(kind: Kind, form: Form, plugin: str, module: str, *, package: bool) -> dict[str, str]:
    """Return the texts by the paths of their files: the plugin and its test come first.

    Args:
        kind: What the plugin does.
        form: Whether it is asked about each node, or about all at once; "node" or "permit" for kind
            "bind".
        plugin: The name of the class.
        module: The name of its module.
        package: Whether it is a project that pip can install, instead of two files.
    """
    names = {
        "plugin": plugin,
        "module": module,
        "project": project_name(module),
        "kind": kind,
        "imports": _IMPORTS[kind, form],
    }
    code = _CODE[kind, form]
    test = TEST_PERMIT if form == "permit" else _TESTS[kind]
    found = {f"{module}.py": code, f"test_{module}.py": test}
    if package:
        found = {
            f"src/{module}/__init__.py": code,
            f"tests/test_{module}.py": test,
            f"src/{module}/py.typed": "",
            "pyproject.toml": PYPROJECT,
            "policy.yaml": POLICY,
            "README.md": README,
        }
    return {file: Template(text).substitute(names) for file, text in found.items()}
