"""Asks the API server what the ServiceAccounts of an installation may do."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import msgspec

from cli.doctor.installation.known import Missing
from cli.doctor.installation.objects import SECONDS
from moorage_host.kube import KubeClient, KubeError, KubeStatusError
from moorage_host.kube.access import ACCESS

AT_ONCE = 8
"""Questions that are asked at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Right:
    """What a user may do, or not.

    Attributes:
        user: As the API server knows it.
        verb: Such as "list".
        resource: The plural; with a subresource, such as "pods/binding".
        group: The API group, "" for the core group.
        namespace: Where; "" for all namespaces.
        name: Of one object; "" for all.
    """

    user: str
    verb: str
    resource: str
    group: str = ""
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        what = f"{self.resource}.{self.group}" if self.group else self.resource
        name = f" {self.name}" if self.name else ""
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.verb} {what}{name}{where}"


Rights = Mapping[Right, bool | Missing]
"""Which rights exist."""


async def review(client: KubeClient, rights: Collection[Right]) -> Rights:
    """Ask about each right; an answer is missing if this user may not ask."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(right: Right) -> bool | Missing:
        async with gate:
            return await _ask(client, right)

    wanted = sorted(set(rights))
    return dict(zip(wanted, await asyncio.gather(*map(one, wanted)), strict=True))


async def _ask(client: KubeClient, right: Right) -> bool | Missing:
    resource, _, subresource = right.resource.partition("/")
    attributes = {
        "verb": right.verb,
        "group": right.group,
        "resource": resource,
        "subresource": subresource,
        "namespace": right.namespace,
        "name": right.name,
    }
    _, _, namespace, _ = right.user.split(":")
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
    spec = {
        "user": right.user,
        "groups": [*groups, "system:authenticated"],
        "resourceAttributes": {key: value for key, value in attributes.items() if value},
    }
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": spec,
    }
    try:
        answer = await client.request(
            "POST", ACCESS, body=msgspec.json.encode(body), timeout=SECONDS
        )
        return bool(msgspec.json.decode(answer.check().body)["status"]["allowed"])
    except (KubeError, TimeoutError, msgspec.DecodeError, KeyError) as error:
        message = error.message if isinstance(error, KubeStatusError) else ""
        return Missing(f"rights cannot be asked for: {message or error or 'no answer in time'}")
