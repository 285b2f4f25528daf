"""Waits until the Deployments are ready, and says what holds them up."""

import time
from collections.abc import Callable, Iterator
from typing import Any

from cli.install.kubectl import InstallError, Kubectl

EVERY = 1.0
"""Seconds between two looks."""

Object = dict[str, Any]
Say = Callable[[str], None]


def wait_until_ready(kubectl: Kubectl, namespace: str, seconds: float, say: Say) -> None:
    """Wait for every Deployment, with a line for each change.

    Raises:
        InstallError: Time is over; the message names what each pod waits for.
    """
    end, shown = time.monotonic() + seconds, ""
    while True:
        found = kubectl.get("deployments", namespace)
        missing = [name for name, ready, wanted in map(_counts, found) if ready < wanted]
        line = ", ".join(f"{name} {ready}/{wanted}" for name, ready, wanted in map(_counts, found))
        if line != shown:
            say(f"ready: {line}")
            shown = line
        if not missing:
            return
        if time.monotonic() > end:
            reasons = dict.fromkeys(_reasons(kubectl.get("pods", namespace)))
            lines = "".join(f"\n  {reason}" for reason in reasons)
            raise InstallError(f"not ready after {seconds:g} s: {', '.join(missing)}{lines}")
        time.sleep(EVERY)


def _counts(deployment: Object) -> tuple[str, int, int]:
    """Return the name, how many replicas are ready, and how many must be."""
    spec, status = deployment["spec"], deployment.get("status") or {}
    (container, *_) = spec["template"]["spec"]["containers"]
    # Of gateways that elect one, only that one is ever ready.
    elects = "--leader-election=lease" in (container.get("args") or ())
    wanted = 1 if elects else spec.get("replicas", 1)
    is_new = status.get("observedGeneration", 0) >= deployment["metadata"].get("generation", 0)
    ready = min(status.get("readyReplicas", 0), wanted)
    return deployment["metadata"]["name"], ready if is_new else 0, wanted


def _reasons(pods: list[Object]) -> Iterator[str]:
    for pod in pods:
        status = pod.get("status") or {}
        states = [
            *(status.get("initContainerStatuses") or ()),
            *(status.get("containerStatuses") or ()),
        ]
        waiting = [state["state"]["waiting"] for state in states if state["state"].get("waiting")]
        conditions = [c for c in status.get("conditions") or () if c.get("status") == "False"]
        for each in waiting or conditions:
            text = ": ".join(filter(None, (each.get("reason"), each.get("message"))))
            yield f"{pod['metadata']['name']}: {text or each.get('type')}"
