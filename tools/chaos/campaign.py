"""Runs rounds: load, faults, calm, and then what the audit log has to say."""

import asyncio
import itertools
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import grpc.aio
import msgspec

from moorage.v1.binder_pb2 import BindRequest
from moorage.v1.binder_pb2_grpc import BinderServiceStub
from moorage_host.kube import KubeClient, KubeStatusError, KubeUnreachableError
from tools.chaos.inject import Injector
from tools.chaos.load import PRIORITY_CLASS, Wanted, nodes
from tools.chaos.oracle import AuditReader, FailedCalls, Verdict, difference, judge, picture
from tools.chaos.schedule import QUIET, Round
from tools.chaos.stack import SCHEDULER, Stack
from tools.planes.objects import NAMESPACE

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
NODES = "/api/v1/nodes"
EVENTS = f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events"
SERVICE = re.compile("^(filter|scorer) service")
"""What begins an Event about an attempt that failed because replicas did, or did not answer."""
PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
CALM_SECONDS = 30.0
"""How long after the last fault every pod must be bound."""

PREEMPTION_SECONDS = 10.0
"""After which the cluster is changed for pods that wait for it: kube-scheduler does not repeat a
preempt call that has failed before something changes, or 5 minutes have passed."""

PICTURE_SECONDS = 10.0
"""How long after that Moorage's picture must be the API server's."""

NOT_READY = frozenset({403, 429, 500, 502, 503, 504})
"""What an API server answers that has just started, or whose etcd is away."""

MOST_POSTS = 1.2
"""Bindings that may be asked for each one that is done."""

MOST_SLOWER = 3
"""Times the p99 of a quiet round that pods may wait beside a tenant who does something bad."""

LEAST_P99 = 1.0
"""Seconds that a quiet p99 counts as at least: pods are tried again after one and two."""

Object = dict[str, Any]


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What became of a round."""

    round: Round
    verdict: Verdict
    lost: list[str] = field(default_factory=list)
    picture: str = ""
    """How Moorage's picture differs from the API server's, nothing if it does not."""

    old_epochs: int = 0
    """Binds of an old epoch that the binder has done."""

    failed_calls: list[str] = field(default_factory=list)
    """Calls of kube-scheduler that got no answer, or one that is none."""

    quiet: float = 0.0
    """The p99 of the quiet round before, 0 if there was none."""

    paid: list[str] = field(default_factory=list)
    """Pods of the load with an attempt that failed because a service did."""

    others: list[str] = field(default_factory=list)
    """What went wrong that the audit log does not show."""

    @property
    def problems(self) -> list[str]:
        """Return why this round has failed, nothing if it has not."""
        verdict = self.verdict
        found = [f"{len(self.lost)} not bound: {', '.join(self.lost[:5])}"] if self.lost else []
        found += [f"{verdict.twice} pods bound twice"] if verdict.twice else []
        found += verdict.broken
        found += [f"{self.old_epochs} binds of an old epoch were done"] if self.old_epochs else []
        if verdict.posts_per_bind > MOST_POSTS and self.round.limits_posts:
            found.append(f"{verdict.posts} POSTs for {verdict.bound} binds")
        found += [f"picture: {self.picture}"] if self.picture else []
        if self.failed_calls and self.round.answers_all:
            found.append(f"{len(self.failed_calls)} calls failed, first {self.failed_calls[0]}")
        if self.round.is_of_tenants and len(self.paid) > self.round.may_pay:
            found.append(f"{len(self.paid)} innocent pods failed: {', '.join(self.paid[:5])}")
        most = MOST_SLOWER * max(self.quiet, LEAST_P99)
        if self.round.limits_waits and self.quiet and verdict.p99 > most:
            found.append(f"pods waited {verdict.p99:.1f} s, in a quiet round {self.quiet:.1f} s")
        return found + self.others


class Campaign:
    """Runs rounds on a stack, one after another."""

    def __init__(
        self,
        stack: Stack,
        client: KubeClient,
        session: aiohttp.ClientSession,
        audit: AuditReader,
    ) -> None:
        self._stack = stack
        self._client = client
        self._injector = Injector(stack, session)
        self._session = session
        self._audit = audit
        self._calls = FailedCalls(stack.programs[SCHEDULER].log)
        self._nodes: Sequence[str] = ()
        self._quiet = 0.0

    async def prepare(self) -> None:
        """Create the nodes, and wait until everything is ready."""
        created = nodes()
        self._nodes = [node["metadata"]["name"] for node in created]
        await self._request("POST", PRIORITY_CLASSES, PRIORITY_CLASS)
        for node in created:
            await self._request("POST", NODES, node)
        await self._until(self._stack.ready, CALM_SECONDS)
        await self._until(self._is_right, CALM_SECONDS)

    async def run(self, chosen: Round) -> Outcome:
        """Create the pods, inject the faults, wait for calm, and judge."""
        self._audit.read()
        self._calls.read()
        async with asyncio.TaskGroup() as group:
            for injection in chosen.injections:
                group.create_task(self._injector.run(injection))
            group.create_task(self._create(chosen.wanted))
        await self._injector.end()
        lost = await self._settle()
        await self._until(self._is_right, PICTURE_SECONDS)
        seen = "" if lost else await self._difference()
        paid = await self._paid(f"r{chosen.number}-") if chosen.is_of_tenants else []
        room = not any(SCHEDULER in each.target for each in chosen.injections)
        verdict = judge(self._audit.read(), chosen.wanted, room=room)
        failed_calls = self._calls.read()
        old_epochs = await self._bind_with_old_epoch(f"r{chosen.number}-probe")
        threads = any(injection.target == "thread" for injection in chosen.injections)
        if lost or seen or threads:  # endless threads may live longer than several rounds
            await self._stack.restart()
            await self._until(self._stack.ready, CALM_SECONDS)
        await self._clear()
        others, self._injector.problems = self._injector.problems, []
        if chosen.row.startswith(QUIET):
            self._quiet = verdict.p99
        return Outcome(
            round=chosen,
            verdict=verdict,
            lost=lost,
            picture=seen,
            old_epochs=old_epochs,
            failed_calls=failed_calls,
            quiet=self._quiet,
            paid=paid,
            others=others,
        )

    # ---- load

    async def _create(self, wanted: Sequence[Wanted]) -> None:
        clock = asyncio.get_running_loop().time
        start = clock()
        created: dict[str, asyncio.Task[Object]] = {}
        async with asyncio.TaskGroup() as group:
            for each in wanted:
                await asyncio.sleep(max(0.0, start + each.at - clock()))
                if each.replaces:
                    await created[each.name]
                    await self._delete(f"{PODS}/{each.name}")
                request = self._request("POST", PODS, each.manifest())
                created[each.name] = group.create_task(request)

    async def _settle(self) -> list[str]:
        """Wait until all pods are bound; return those that are not in time."""

        async def bound() -> bool:
            return not await self._pending()

        await self._until(self._stack.ready, CALM_SECONDS)
        if not await self._until(bound, PREEMPTION_SECONDS):
            await self._make_room()
            await self._until(bound, CALM_SECONDS - PREEMPTION_SECONDS)
        return await self._pending()

    async def _paid(self, prefix: str) -> list[str]:
        """Return which pods of a round had an attempt that failed because a service did."""
        items = (await self._request("GET", EVENTS)).get("items") or []
        found = {
            each["regarding"]["name"]
            for each in items
            if each["reason"] == "FailedScheduling" and SERVICE.search(each["note"])
        }
        return sorted(name for name in found if name.startswith(prefix))

    async def _make_room(self) -> None:
        """Delete one of the pods that may be evicted, if pods wait that may evict them."""
        places = await self._places()
        if any("-important-" in name for name, node in places.items() if not node):
            victim = next((n for n, node in places.items() if node and "-evictable-" in n), None)
            if victim:
                await self._delete(f"{PODS}/{victim}")

    async def _pending(self) -> list[str]:
        places = await self._places()
        # Those that have to make room for others may wait for ever.
        return [name for name, node in places.items() if not node and "-evictable-" not in name]

    async def _places(self) -> dict[str, str]:
        """Return the node of each pod by name, "" for none."""
        items = (await self._request("GET", PODS)).get("items") or []
        return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in items}

    async def _clear(self) -> None:
        """Delete all pods, and wait until Moorage has seen that."""
        await self._delete(PODS)
        await self._until(self._is_right, PICTURE_SECONDS)

    async def _bind_with_old_epoch(self, name: str) -> int:
        """Ask the binder for a bind of the epoch before; return how many it has done."""
        epochs = [await self._metric(each, "moorage_term_epoch") for each in self._stack.gateways]
        old = int(max(epochs)) - 1
        if old < 1:
            return 0
        probe = Wanted(name=name, kind="probe", at=0, pool="plain", profile="nobody")
        created = await self._request("POST", PODS, probe.manifest())
        request = BindRequest(
            namespace=NAMESPACE,
            name=name,
            uid=created["metadata"]["uid"],
            node="plain-0",
            epoch=old,
        )
        async with self._stack.channel("binder", "gateway") as channel:
            with suppress(grpc.aio.AioRpcError):
                await BinderServiceStub(channel).Bind(request, timeout=5)
                return 1
        return 0

    # ---- picture

    async def _difference(self) -> str:
        real = {f"{NAMESPACE}/{name}": at for name, at in (await self._places()).items() if at}
        try:
            async with self._stack.channel("filter", "operator") as channel:
                seen = await picture(channel, self._nodes)
        except grpc.aio.AioRpcError as error:
            return f"the filter does not show it: {error.details()}"
        if found := difference(seen, real):
            return found
        return await self._leftovers()

    async def _leftovers(self) -> str:
        """Return which assumed pods and claims gateways still keep."""
        for name in self._stack.gateways:
            for kind in ("assumed_pods", "claims"):
                try:
                    count = await self._metric(name, f'moorage_cache_size{{type="{kind}"}}')
                except aiohttp.ClientError as error:
                    return f"{name} does not answer: {error}"
                if count:
                    return f"{name} keeps {count:g} {kind.replace('_', ' ')}"
        return ""

    async def _metric(self, gateway: str, sample: str) -> float:
        """Return a sample of a gateway's metrics, 0 if there is none."""
        url = f"{self._stack.admin(gateway)}/metrics"
        async with self._session.get(url, ssl=self._stack.ssl()) as answer:
            lines = (await answer.text()).splitlines()
        found = (line.removeprefix(f"{sample} ") for line in lines if line.startswith(f"{sample} "))
        return float(next(found, 0))

    async def _is_right(self) -> bool:
        return not await self._difference()

    # ---- all the rest

    async def _request(self, method: str, path: str, body: Object | None = None) -> Object:
        """Send a request until it is answered: the API server may be what is broken."""
        data = None if body is None else msgspec.json.encode(body)
        async with asyncio.timeout(CALM_SECONDS):
            for attempt in itertools.count():
                with suppress(KubeUnreachableError):
                    answer = await self._client.request(method, path, body=data, timeout=5)
                    if attempt and method == "POST" and answer.status == 409:
                        return {}  # the attempt before was carried out
                    if answer.status not in NOT_READY:
                        decoded: Object = msgspec.json.decode(answer.check().body)
                        return decoded
                await asyncio.sleep(0.2)
        raise AssertionError

    async def _delete(self, path: str) -> None:
        now = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        with suppress(KubeStatusError):  # 404, it is gone already
            await self._request("DELETE", path, now)

    async def _until(self, condition: Callable[[], Any], seconds: float) -> bool:
        """Wait until a condition holds; return whether it does."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not await condition():  # noqa: ASYNC110 - conditions of any kind
                    await asyncio.sleep(0.1)
                return True
        return False
