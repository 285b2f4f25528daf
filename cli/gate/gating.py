"""Removes the gate of groups that fit, one group after the other.

Whether a group fits the gateway says, by a simulation, which holds and changes nothing. Then the
gates of its pods go, and kube-scheduler takes them; the gateway finds nodes for them again. So a
node that is gone in the meantime, or taken, costs an attempt and nothing else. The next group is
let go once the pods of that one are bound, so that its simulation counts them.
"""

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from cli.shared.gateway.client import Gateway, connected
from cli.shared.gateway.finding import GatewayError
from cli.shared.gateway.options import GatewayOptions
from cli.shared.output import echo
from moorage.groups import GROUP, Name, group_order
from moorage.models import Pod, decode_pod
from moorage_host.kube import KubeClient, KubeError, KubeStatusError, connect

GATE = GROUP
"""The gate has the name of the label that names the group."""

SECONDS = 10.0

OF_ALL_GROUPS = (401, 403, 404, 429)
"""Statuses of answers that the next group would get, too."""

Manifest = dict[str, Any]
Members = Sequence[tuple[Pod, Manifest]]


async def run(options: GatewayOptions, *, once: bool, interval: float, timeout: float) -> None:
    """Look at the groups every *interval* seconds, or once.

    Raises:
        ConfigurationError: There is no kubeconfig, or a file cannot be used.
        GatewayError: With *once*: the gateway does not answer.
        KubeError: With *once*: the API server does not answer, or refuses to.
    """
    client = await connect(options.kubeconfig, context=options.context or None)
    gates = Gates(client, timeout)
    try:
        while True:
            try:
                async with connected(options, client) as gateway:
                    for line in await gates.look(gateway):
                        echo(line)
            except (GatewayError, KubeError, TimeoutError) as error:
                if once:
                    raise
                echo(f"groups stay at their gates: {error}", err=True)
            if once:
                return
            await asyncio.sleep(interval)
    finally:
        await client.close()


class Gates:
    """Knows which group was let go last.

    Attributes:
        reported: What was last reported of each group that stays.
    """

    def __init__(self, client: KubeClient, timeout: float) -> None:
        """Let the next group go *timeout* seconds after one that is not bound, at the latest."""
        self._client = client
        self._timeout = timeout
        self._going: dict[Name, float] = {}
        self.reported: dict[Name, str] = {}

    async def look(self, gateway: Gateway) -> list[str]:
        """Let the first group go that fits, if none is on its way; return what is new, in lines."""
        groups = await self._groups()
        now = time.monotonic()
        self._going = {
            name: at
            for name, at in self._going.items()
            if now - at < self._timeout
            and not all(pod.spec.node_name for pod, _ in groups.get(name, ()))
        }
        if self._going:
            return []
        lines: list[str] = []
        silent = 0
        for name in sorted(groups, key=lambda n: group_order(n, [pod for pod, _ in groups[n]])):
            gated = [
                manifest
                for pod, manifest in groups[name]
                if any(gate.name == GATE for gate in pod.spec.scheduling_gates)
            ]
            if not gated:
                continue
            try:
                answer = await gateway.post("/simulate", {"pod": gated[0]})
                if fits := answer.get("group", {}).get("fits", False):
                    for manifest in gated:
                        await self._open(manifest)
            except GatewayError as error:
                silent += not error.status
                if error.status in OF_ALL_GROUPS or silent > 1:
                    raise
                fits, answer = False, {"words": [str(error)]}
            except KubeStatusError as error:
                fits, answer = False, {"words": [f"its gate cannot be removed: {error}"]}
            sentence = str(answer["words"][0]) if answer["words"] else "it does not fit"
            if fits:
                self._going[name] = now
                self.reported.pop(name, None)
                return [*lines, f"{'/'.join(name)}: its {len(gated)} pods may go"]
            if self.reported.get(name) != sentence:
                lines.append(f"{'/'.join(name)} stays: {sentence}")
                self.reported[name] = sentence
        return lines

    async def _groups(self) -> Mapping[Name, Members]:
        """Return the pods of each group that have not ended."""
        listed = await self._client.items(
            "/api/v1/pods", query={"labelSelector": GATE}, timeout=SECONDS
        )
        groups: defaultdict[Name, list[tuple[Pod, Manifest]]] = defaultdict(list)
        for raw in listed:
            pod = decode_pod(raw)
            if not pod.is_terminal and not pod.is_terminating:
                groups[pod.namespace, pod.labels[GATE]].append((pod, json.loads(bytes(raw))))
        return groups

    async def _open(self, pod: Manifest) -> None:
        """Remove the gate of a pod, if it is still the one that was seen."""
        metadata, gates = pod["metadata"], pod["spec"]["schedulingGates"]
        patch = {
            "metadata": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]},
            "spec": {"schedulingGates": [each for each in gates if each["name"] != GATE] or None},
        }
        try:
            answer = await self._client.request(
                "PATCH",
                f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}",
                body=json.dumps(patch).encode(),
                content_type="application/merge-patch+json",
                timeout=SECONDS,
            )
            answer.check()
        except KubeStatusError as error:
            if error.status not in (404, 409):  # gone, or changed: the next look sees that
                raise
