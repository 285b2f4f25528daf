"""The policy in force: the document, resolved against what the replicas say they can run."""

import asyncio
from collections.abc import Sequence

import structlog
from google.protobuf.json_format import MessageToDict

from moorage.errors import ConfigurationError
from moorage.policy import Catalogue, Document, Kind, PluginInfo, ResolvedPolicy, resolve
from moorage.v1 import types_pb2 as pb

log = structlog.get_logger()

NEEDED: tuple[Kind, ...] = ("filter", "score")
"""The kinds of service whose plugins must be known before a policy can be resolved."""


class PolicyHolder:
    """Knows the policy once a filter and a scorer have said what they can run.

    Attributes:
        resolved: The policy in force, None until it is known.
        problem: Why there is none; empty if there is one.
    """

    def __init__(self, document: Document) -> None:
        """Hold *document*, not resolved yet."""
        self.resolved: ResolvedPolicy | None = None
        self.problem = "waiting for a filter and a scorer replica to say which plugins they have"
        self._document = document
        self._plugins: dict[str, list[PluginInfo]] = {}
        self._known = asyncio.Event()

    def learn(self, kind: str, plugins: Sequence[pb.Plugin]) -> None:
        """Take over what a replica of *kind* can run, and resolve the document with it."""
        self._plugins[kind] = [_info(plugin) for plugin in plugins]
        if any(needed not in self._plugins for needed in NEEDED):
            return
        try:
            everything = [info for infos in self._plugins.values() for info in infos]
            self.resolved = resolve(self._document, Catalogue(everything))
        except ConfigurationError as error:
            if self.resolved is None:
                self.problem = str(error)
            log.warning("The policy cannot be used", error=str(error))
            return
        for warning in self.resolved.warnings:
            log.warning("A part of the policy has no effect", warning=warning)
        self.problem = ""
        self._known.set()

    async def for_kind(self, kind: str) -> pb.Policy:
        """Return the policy for one kind of service, once it is known."""
        await self._known.wait()
        assert self.resolved is not None  # noqa: S101 - known
        policy = self.resolved.policies["filter" if kind == "filter" else "score"]
        content = self.resolved.for_kind("filter" if kind == "filter" else "score")
        return pb.Policy(revision=policy.revision, json=content)

    def has_profile(self, name: str) -> bool:
        """Whether pods with this schedulerName are ours."""
        return self.resolved is not None and name in self.resolved.profile_names

    @property
    def score_scale(self) -> int:
        """The highest score sent to kube-scheduler."""
        return self.resolved.score_scale if self.resolved else 10

    @property
    def revision(self) -> str:
        """The revision of the policy in force."""
        return self.resolved.revision if self.resolved else ""


def _info(plugin: pb.Plugin) -> PluginInfo:
    return PluginInfo(
        name=plugin.name,
        points=frozenset(plugin.extension_points),
        origin=plugin.origin,
        args_schema=MessageToDict(plugin.arguments_schema),
        default_args=MessageToDict(plugin.default_arguments),
    )
