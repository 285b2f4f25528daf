"""Writes the test file."""

import inspect
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from pprint import pformat
from string import Template
from typing import Any

from cli.whatif.replay.showing import time_of
from cli.whatif.replay.to_test.expectation import Expectation
from cli.whatif.replay.to_test.reducing import Reduced
from cli.whatif.replay.to_test.situation import Situation
from moorage.models import ObjectKind, encode
from moorage.plugin.base import Plugin
from moorage_host.plugins.registry import Registered

WIDTH = 96

FILE = Template('''"""$summary"""

import json
$imports
from moorage.models import ${models}decode_node, decode_pod
from moorage.testing import $run
$plugin_import

ARGUMENTS = $arguments

POD = $pod

NODES = $nodes

PODS = $pods
$objects

def test_$name() -> None:
    plugin = $class_name(msgspec.convert(ARGUMENTS, $class_name.Args))
    answers = $run(
        plugin,
        decode_pod(json.dumps(POD)),
        *(decode_node(json.dumps(node)) for node in NODES),
        pods=[decode_pod(json.dumps(pod)) for pod in PODS],$objects_argument
    )
$asserts
''')

ASSERTS = {
    "feasible": "    assert answers[{node!r}] is None, answers[{node!r}]",
    "rejected": "    assert answers[{node!r}] is not None, {node!r} + ' passed'",
    "node": "    assert answers[{node!r}] >= max(answers.values()), answers",
}
"""What is asserted, by the wish."""


def test_file(
    situation: Situation, expectation: Expectation, cluster: Reduced, folder: Path
) -> str:
    """Return the text of a test that is put into *folder*."""
    registered = expectation.plugin
    objects = {kind: some for kind, some in cluster.objects.items() if some}
    return FILE.substitute(
        summary=_summary(situation, expectation, cluster),
        imports=_imports(registered, folder),
        models="ObjectKind, " if objects else "",
        run="run_filter" if expectation.kind == "filter" else "run_score",
        plugin_import=_plugin_import(registered),
        arguments=_literal(expectation.arguments),
        pod=_literal(_plain(situation.pod)),
        nodes=_literal([_plain(node) for node in cluster.nodes]),
        pods=_literal([_plain(pod) for pod in cluster.pods]),
        objects=_objects(objects),
        objects_argument="\n        objects=OBJECTS," if objects else "",
        name=_name(situation, expectation),
        class_name=registered.kind.__name__,
        asserts=ASSERTS[expectation.wish].format(node=expectation.node),
    )


def sentence(expectation: Expectation) -> str:
    """Return what was decided, and what should have been."""
    plugin, node = expectation.plugin.kind.name, expectation.node
    if expectation.wish == "feasible":
        why = f": {expectation.recorded}" if expectation.recorded else ""
        return f"{plugin} should let {node} pass, and rejects it{why}."
    if expectation.wish == "rejected":
        return f"{plugin} should reject {node}, and lets it pass."
    return f"{plugin} should prefer {node}, and prefers {expectation.rival}."


def _summary(situation: Situation, expectation: Expectation, cluster: Reduced) -> str:
    recorded, (attempt, attempts) = situation.recorded, situation.attempt
    pod = f"{situation.pod.namespace}/{situation.pod.name}"
    return (
        f"{sentence(expectation)}\n\n"
        f"Recorded at {time_of(recorded.time)}: cycle {recorded.cycle.id}, attempt {attempt} of "
        f"{attempts} on pod {pod}, policy {recorded.policy.revision}.\n"
        f"{len(cluster.nodes)} of {len(situation.nodes)} nodes and {len(cluster.pods)} of "
        f"{len(situation.pods)} pods are here: those on which the answer depends.\n"
        "Written by `moorage journal to-test`. Annotations may have been left out of the journal.\n"
    )


def _imports(registered: Registered, folder: Path) -> str:
    file = Path(registered.origin)
    is_elsewhere = file.suffix == ".py" and file.parent.resolve() != folder.resolve()
    lines = ["import sys"] if is_elsewhere else []
    lines += ["", "import msgspec"]
    if is_elsewhere:
        lines += ["", f"sys.path.insert(0, {str(file.parent.resolve())!r})  # of the plugin", ""]
    return "\n".join(lines)


def _plugin_import(registered: Registered) -> str:
    kind: type[Plugin] = registered.kind
    is_file = Path(registered.origin).suffix == ".py"
    module = Path(inspect.getfile(kind)).stem if is_file else kind.__module__
    return f"\nfrom {module} import {kind.__name__}\n"


def _objects(objects: Mapping[ObjectKind, Sequence[Mapping[str, Any]]]) -> str:
    if not objects:
        return ""
    parts = "".join(f"    {_kind(kind)}: {_literal(some)},\n" for kind, some in objects.items())
    return f"\nOBJECTS = {{\n{parts}}}\n"


def _kind(kind: ObjectKind) -> str:
    given = {"namespace": kind.namespace, "label_selector": kind.label_selector}
    given |= {"field_selector": kind.field_selector}
    more = "".join(f", {name}={value!r}" for name, value in given.items() if value)
    optional = ", optional=True" if kind.optional else ""
    return f"ObjectKind({kind.api_version!r}, {kind.plural!r}{more}{optional})"


def _plain(model: Any) -> Any:
    return json.loads(encode(model))


def _literal(value: Any) -> str:
    return pformat(value, width=WIDTH, sort_dicts=False)


def _name(situation: Situation, expectation: Expectation) -> str:
    plugin, node, pod = expectation.plugin.kind.name, expectation.node, situation.pod.name
    words = {
        "feasible": f"{plugin} lets {pod} pass on {node}",
        "rejected": f"{plugin} rejects {node} for {pod}",
        "node": f"{plugin} prefers {node} for {pod}",
    }[expectation.wish]
    return re.sub(r"\W+", "_", words).lower()
