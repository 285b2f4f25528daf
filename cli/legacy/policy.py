"""Reads the Policy of kube-scheduler before 1.23, wherever it stands in a file.

That is the file itself, one of its YAML documents, or a text in a ConfigMap, where kube-scheduler
took it from too. All mistakes about predicates and priorities are found at once.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import yaml
from msgspec import Meta

from cli.legacy.names import PREDICATES, PRIORITIES
from moorage.errors import ConfigurationError, suggestion
from moorage.files import LOADER, check_costs
from moorage_host.policy import read
from moorage_host.policy.checks import Problem, child, find_problems, nulls_as_absent
from moorage_host.policy.kinds import what_it_is
from moorage_host.policy.yaml_lines import MAX_VALUES, Tree, read_tree

Object = dict[str, Any]

_Name = Annotated[str, Meta(min_length=1, title="a name")]
_Weight = Annotated[int, Meta(ge=1, le=2**31 - 1, title="an integer from 1 to 2147483647")]
_Percent = Annotated[int, Meta(ge=0, le=100, title="an integer from 0 to 100")]


class _LegacyPart(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"
):
    """A part of the Policy."""


class LegacyPredicate(_LegacyPart, frozen=True, kw_only=True):
    """A rule for nodes; one of the user's own has an argument, by what it does."""

    name: _Name
    argument: dict[str, Object] = {}


class LegacyPriority(_LegacyPart, frozen=True, kw_only=True):
    """A score for nodes; one of the user's own has an argument, by what it does."""

    name: _Name
    weight: _Weight
    argument: dict[str, Object] = {}


class LegacyPolicy(_LegacyPart, frozen=True, kw_only=True):
    """The whole document; None is what kube-scheduler did by default."""

    api_version: Literal["v1", "kubescheduler.config.k8s.io/v1"]
    kind: Literal["Policy"]
    predicates: tuple[LegacyPredicate, ...] | None = None
    priorities: tuple[LegacyPriority, ...] | None = None
    extenders: tuple[Object, ...] = ()
    hard_pod_affinity_symmetric_weight: _Percent = 0
    always_check_all_predicates: bool = False


def read_policy(path: Path) -> tuple[LegacyPolicy, Tree]:
    """Return the only Policy in a file, with its lines there.

    Raises:
        ConfigurationError: There is none, or there are several; or one line for each mistake.
    """
    trees = list(_documents(read(path), str(path)))
    found = [tree for each in trees for tree in (each, *_in_config_map(each)) if _is_policy(tree)]
    if len(found) > 1:
        places = ", ".join(tree.where("") for tree in found)
        message = f"there are several Policies, write one into a file: {places}"
        raise ConfigurationError(f"{path}:1: {message}")
    if not found and len(trees) > 1:
        kinds = ", ".join(what_it_is(tree.value) or "a document without kind" for tree in trees)
        raise ConfigurationError(f"{path}:1: there is no Policy in it: {kinds}")
    tree = found[0] if found else trees[0]
    what = what_it_is(tree.value)
    if what and not found:
        tree.refuse(
            [Problem("kind", f"{what}; a Policy of kube-scheduler before 1.23 is expected")]
        )
    value = nulls_as_absent(tree.value, LegacyPolicy)
    tree.refuse(tree.problems + find_problems(value, LegacyPolicy, ""))
    policy = msgspec.convert(value, LegacyPolicy)
    tree.refuse(list(_unknown_names(policy)))
    return policy, tree


def _documents(text: str, source: str) -> Iterator[Tree]:
    """Yield the documents of a text, each with its lines in it."""
    try:
        check_costs(text, source, most=MAX_VALUES)
        roots = list(yaml.compose_all(text, LOADER))
    except (yaml.YAMLError, ConfigurationError):
        roots = []  # a reader that names the place reads it once more
    starts = [root.start_mark for root in roots if root is not None and root.start_mark]
    if len(starts) < 2:
        yield read_tree(text, source, as_kubernetes=True)
        return
    for start, end in zip(starts, [*(mark.index for mark in starts[1:]), len(text)], strict=True):
        part = re.sub(r"\n---[^\n]*\s*$", "\n", text[start.index : end])
        yield read_tree("\n" * start.line + part, source, as_kubernetes=True)


def _in_config_map(tree: Tree) -> Iterator[Tree]:
    """Yield the Policies in the data of a ConfigMap, with their lines in the file."""
    value = tree.value
    if not isinstance(value, dict) or value.get("kind") != "ConfigMap":
        return
    data = value.get("data")
    for key, text in (data if isinstance(data, dict) else {}).items():
        if not isinstance(text, str) or "Policy" not in text:
            continue
        place = child("data", key)
        source = f"{tree.source}:{tree.line(place)}: {place}"
        try:
            inner = read_tree(text, source, as_kubernetes=True)
        except ConfigurationError:
            if re.search(r"""["']?kind["']?\s*:\s*["']?Policy\b""", text):
                raise
            continue
        yield inner


def _is_policy(tree: Tree) -> bool:
    value = tree.value
    if not isinstance(value, dict) or value.get("kind") != "Policy":
        return False
    group = str(value.get("apiVersion") or "v1").partition("/")[0]
    return group in ("v1", "v2", "kubescheduler.config.k8s.io")


def _unknown_names(policy: LegacyPolicy) -> Iterator[Problem]:
    known: Sequence[tuple[str, Sequence[LegacyPredicate | LegacyPriority], Collection[str]]] = (
        ("predicates", policy.predicates or (), PREDICATES),
        ("priorities", policy.priorities or (), PRIORITIES),
    )
    for part, listed, names in known:
        kind = "predicate" if part == "predicates" else "priority"
        for index, each in enumerate(listed):
            if not each.argument and each.name not in names:
                hint = _near(each.name, names) or (
                    f": kube-scheduler had none of this name; a {kind} of your own needs an "
                    "argument, and one of another program has to be written again as a plugin"
                )
                path = child(part, index)
                yield Problem(f"{path}.name", f"unknown {kind} `{each.name}`{hint}")


_ENDING = "Priority"


def _near(name: str, names: Collection[str]) -> str:
    """Return the nearest name; that all priorities end alike makes none of them near."""
    if not name.endswith(_ENDING):
        return suggestion(name, names)
    stems = {known.removesuffix(_ENDING): known for known in names}
    near = suggestion(name.removesuffix(_ENDING), stems)
    for stem, known in stems.items():
        near = near.replace(f"`{stem}`", f"`{known}`")
    return near
