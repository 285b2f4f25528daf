"""Pods are equal if they differ only where no plugin of their profile looks."""

from pathlib import Path
from typing import Any

import pytest

from moorage import Scope
from moorage.plugin.base import Plugin
from tests.gateway.cycle.cache.caching import (
    NAMES,
    Asked,
    answered,
    caching,
    fill,
    noting,
    of_set,
    policy,
)
from tests.gateway.cycle.cache.rejecting import Hot
from tests.gateway.sharing import place, same
from tools.inprocess.gateway import filter_service, gateway, ready, scorer_service

TOLERANT = {"tolerations": [{"key": "gpu", "operator": "Exists"}]}


def naming(
    filters: tuple[str, ...] | None, scores: tuple[str, ...] | None
) -> tuple[type[Plugin], ...]:
    """Return the plugins of `noting`, which say that they look at these fields."""
    fits, likes = noting(Asked())
    made: list[tuple[Any, tuple[str, ...] | None]] = [(fits, filters), (likes, scores)]
    return tuple(
        type(kind.__name__, (kind,), {"depends_on": Scope.NODE, "pod_fields": fields})
        for kind, fields in made
    )


def in_order(number: int) -> dict[str, Any]:
    """Return what pods of StatefulSets, Jobs and workflows have of their own."""
    return {
        "labels": {"app": "web", "apps.kubernetes.io/pod-index": f"{number}"},
        "annotations": {"batch.kubernetes.io/job-completion-index": f"{number}"},
        "ownerReferences": [{"kind": "Workflow", "name": f"w{number}", "uid": f"u{number}"}],
    }


@pytest.mark.parametrize(
    ("filters", "scores", "asked"),
    [
        ((), (), (2, 2)),
        (("spec.tolerations",), ("spec.containers[*].image",), (2, 2)),
        (("metadata.labels",), (), (4, 2)),
        ((), ("metadata.annotations", "spec.tolerations"), (2, 4)),
        ((), None, (2, 4)),
        (None, (), (4, 2)),
    ],
)
async def test_pods_are_asked_about_again_for_what_is_looked_at(
    tmp_path: Path,
    filters: tuple[str, ...] | None,
    scores: tuple[str, ...] | None,
    asked: tuple[float, float],
) -> None:
    text = policy(scores="{name: Likes}")
    async with caching(tmp_path, *naming(filters, scores), text=text) as process:
        await fill(process)
        pods = [of_set(f"web-{number}", **in_order(number)) for number in range(4)]
        first, *others = [await place(process, pod, NAMES) for pod in pods]
        for other in others:
            same(first, other)
        assert answered(process) == asked


async def test_a_pod_that_differs_in_a_field_that_one_plugin_looks_at_is_another(
    tmp_path: Path,
) -> None:
    text = policy(filters="{name: Fits}, {name: TaintToleration}", scores="{name: Likes}")
    async with caching(tmp_path, *naming((), ()), text=text) as process:
        await fill(process)
        pods = [of_set(f"web-{number}", **in_order(number)) for number in range(4)]
        for pod in pods[2:]:
            pod["spec"] |= TOLERANT
        placed = [await place(process, pod, NAMES) for pod in pods]
        for other in placed:
            same(placed[0], other)
        assert answered(process) == (4, 2), "only the filter TaintToleration looks at it"


async def test_profiles_do_not_share_what_they_remember(tmp_path: Path) -> None:
    text = policy(scores="{name: Likes}")
    head, _, profile = text.partition("- ")
    text = head + "".join(f"- schedulerName: {name}\n  {profile}" for name in ("moorage", "other"))
    async with caching(tmp_path, *naming((), ()), text=text) as process:
        await fill(process)
        for name in ("moorage", "other", "moorage", "other", "moorage", "other"):
            pod = of_set(f"{name}-{answered(process)[0]:.0f}")
            pod["spec"]["schedulerName"] = name
            await place(process, pod, NAMES)
        assert answered(process) == (4, 4)


async def test_pods_that_fit_nowhere_are_rejected_from_the_cache_by_the_fields_that_are_read(
    tmp_path: Path,
) -> None:
    class Labelled(Hot):
        """The same, and says that it looks at labels."""

        depends_on = Scope.CLUSTER
        pod_fields = ("metadata.labels",)

    file = tmp_path / "policy.yaml"
    file.write_text(policy(filters="{name: Labelled}", scores="{name: Equal}"))
    async with (
        filter_service(Labelled) as filters,
        scorer_service() as scorer,
        gateway(tmp_path, filters=(filters,), scorer=scorer, config=file, cache_pods=32) as process,
    ):
        await process.node("n1", "n2", "n3")
        await ready(process)
        own = [{"annotations": {"index": f"{number}"}} for number in range(3)]
        answers = [await process.filter(of_set(f"p{i}", **own[i]), "n1", "n3") for i in range(3)]
        assert answers[0] == answers[1] == answers[2]
        assert answered(process)[0] == 2
        fits = of_set("p4", labels={"fits": "n1"})
        assert (await process.filter(fits, "n1", "n3"))["NodeNames"] == ["n1"]
