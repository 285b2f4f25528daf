"""Turns an effective policy into running plugin instances, and passes on what they report."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from moorage.errors import ConfigurationError, UnknownNameError
from moorage.execution.enabled import EnabledPlugin, Profile, by_hand, start_plugin, stop_plugin
from moorage.execution.failure import problem_of
from moorage.plugin.cycle_state import CYCLE_STATE_BYTES
from moorage.plugin.hooks import FilterPlugin
from moorage_host.plugins.registry import Registry
from moorage_host.plugins.threads import BusyThreads
from moorage_host.policy.checks import check_arguments
from moorage_host.policy.effective import EffectivePlugin, EffectiveProfile, decode_effective

PROBLEMS_SECONDS = 1.0
"""How often to look whether background work of plugins fails, while somebody follows that."""

MOST_POLICIES = 32
"""Policies that run at a time, one for each session and bind at most; each has plugin instances."""

log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Policy:
    """The running profiles of one revision, shared by the sessions that sent it.

    Attributes:
        shadows: Those that decide nothing, by their own names.
        broken: Why a shadow does not run, by its name; that keeps no profile from running.
    """

    revision: str = ""
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    shadows: dict[str, Profile] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    users: int = 0
    _by_hand: dict[str, Profile] = field(default_factory=dict)

    @property
    def plugins(self) -> Iterator[EnabledPlugin]:
        """The plugins of all profiles and shadows."""
        every = (*self.profiles.values(), *self.shadows.values())
        return (enabled for profile in every for enabled in profile.plugins)

    def profile(self, name: str, plugin: str = "", *, calls_by_hand: bool = False) -> Profile:
        """Return the profile called *name*, or only its plugin called *plugin*.

        With *calls_by_hand* the plugins have a budget and overruns of their own.

        Raises:
            UnknownNameError: There is none.
        """
        profile = self.profiles.get(name) or self.shadows.get(name)
        if profile is None:
            if name in self.broken:
                raise ConfigurationError(self.broken[name])
            known = ", ".join(sorted(self.profiles)) or "none"
            raise UnknownNameError(f"unknown profile {name!r}; profiles here: {known}")
        if calls_by_hand:
            profile = self._by_hand.get(name) or self._for_calls_by_hand(profile)
        if not plugin:
            return profile
        chosen = tuple(p for p in profile.plugins if p.name == plugin)
        if not chosen:
            known = ", ".join(p.name for p in profile.plugins) or "none"
            raise UnknownNameError(
                f"plugin {plugin!r} is not enabled here in profile {name!r}; enabled: {known}"
            )
        return replace(profile, plugins=chosen)

    def _for_calls_by_hand(self, profile: Profile) -> Profile:
        plugins = tuple(by_hand(enabled) for enabled in profile.plugins)
        made = self._by_hand[profile.name] = replace(profile, plugins=plugins)
        return made


class RetryRequests:
    """Passes on what plugins ask for, to all who follow at that time."""

    def __init__(self) -> None:
        self._followers: set[_Follower] = set()

    def ask(self, plugin: str, reason: str, namespace: str) -> None:
        """Note that a plugin asks for it, "" for all namespaces; may be called in any thread."""
        for follower in tuple(self._followers):
            follower.loop.call_soon_threadsafe(follower.put, plugin, reason, namespace)

    async def follow(self) -> AsyncIterator[tuple[str, str, str]]:
        """Yield plugins, reasons and namespaces from here on; several requests may be one."""
        follower = _Follower()
        self._followers.add(follower)
        try:
            while not follower.has_ended:
                await follower.changed.wait()
                for (plugin, namespace), reason in follower.take().items():
                    yield plugin, reason, namespace
        finally:
            self._followers.discard(follower)

    def end(self) -> None:
        """End all that follow."""
        for follower in self._followers:
            follower.has_ended = True
            follower.changed.set()


class _Follower:
    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.changed = asyncio.Event()
        self.has_ended = False
        self._asked: dict[tuple[str, str], str] = {}

    def put(self, plugin: str, reason: str, namespace: str) -> None:
        self._asked[plugin, namespace] = reason
        self.changed.set()

    def take(self) -> dict[tuple[str, str], str]:
        self.changed.clear()
        asked, self._asked = self._asked, {}
        return asked


class PluginHost:
    """Builds, starts, shares and stops plugin instances.

    Attributes:
        latest: The policy that was used last.
        refusal: Why the newest policy cannot be used; "" if it is.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        cycle_state_bytes: int = CYCLE_STATE_BYTES,
        count_failure: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Find plugin classes in *registry*.

        Args:
            registry: The plugins that there are.
            cycle_state_bytes: How much a plugin may keep in a cycle for the bind.
            count_failure: Called with a plugin's name when its background work fails.
        """
        self.registry = registry
        self.retries = RetryRequests()
        self._cycle_state_bytes = cycle_state_bytes
        self._count_failure = count_failure
        self.latest = Policy()
        self.refusal = ""
        self._threads = BusyThreads()
        self._policies: dict[str, Policy] = {}
        self._starting = asyncio.Lock()
        self._reports_end = asyncio.Event()

    def background_problems(self) -> dict[str, str]:
        """Return what fails in the background of the latest policy's plugins, by their names."""
        self._threads.look(self.latest.plugins)
        threads = self._threads.problems.get
        failing: dict[str, list[str]] = {}
        shadows = self.latest.shadows
        for profile in (*self.latest.profiles.values(), *shadows.values()):
            of_shadow = f" of {profile.name}" if profile.name in shadows else ""
            for enabled in profile.plugins:
                name, found = enabled.name, (enabled.background.problem, enabled.overruns.problem)
                if problem := "; ".join(filter(None, (*found, threads(name)))):
                    failing.setdefault(f"{name}{of_shadow}", []).append(problem)
        return {name: "; ".join(dict.fromkeys(some)) for name, some in failing.items()}

    def background_note(self) -> str:
        """Return the same as one text, for people; empty if nothing fails."""
        problems = self.background_problems().items()
        return "; ".join(f"plugin {name}: {problem}" for name, problem in problems)

    def end_reports(self) -> None:
        """End all that follow what plugins ask for, and what fails in their background."""
        self._reports_end.set()
        self.retries.end()

    async def follow_problems(self) -> AsyncIterator[dict[str, str]]:
        """Yield what `background_problems` returns: at first, and while something fails or did."""
        problems: dict[str, str] | None = None
        while not self._reports_end.is_set():
            before, problems = problems, self.background_problems()
            if problems != before:
                yield problems
            with suppress(TimeoutError):
                async with asyncio.timeout(PROBLEMS_SECONDS):
                    await self._reports_end.wait()

    def policy_note(self) -> str:
        """Return why the newest policy is refused, for people; "" if it is not."""
        return f"the newest policy is refused: {self.refusal}" if self.refusal else ""

    async def use(self, revision: str, content: bytes) -> Policy:
        """Return the running policy of *revision*, started if no session uses it yet.

        Raises:
            ConfigurationError: It names an unknown plugin, arguments that one does not take, or
                one that does not start; or too many policies run.
        """
        try:
            policy = await self._use(revision, content)
        except ConfigurationError as error:
            self.refusal = str(error)
            raise
        self.refusal = ""
        return policy

    async def _use(self, revision: str, content: bytes) -> Policy:
        async with self._starting:
            policy = self._policies.get(revision)
            if policy is None:
                if len(self._policies) >= MOST_POLICIES:
                    raise ConfigurationError(
                        f"this replica runs {MOST_POLICIES} policies already, and no more at a time"
                    )
                effective = decode_effective(content)
                profiles = {each.name: self._build(each) for each in effective.profiles}
                policy = Policy(revision=revision, profiles=profiles)
                await _start(policy.profiles.values())
                for shadow in effective.shadows:
                    await self._add_shadow(policy, shadow)
                self._policies[revision] = policy
            policy.users += 1
        former, self.latest = self.latest, policy
        await self._discard(former)
        return policy

    async def release(self, policy: Policy) -> None:
        """End a session's use of *policy*.

        The latest goes on in case the session comes back, unless others use another one.
        """
        policy.users -= 1
        if policy is self.latest and policy.users <= 0:
            others = (other for other in self._policies.values() if other.users > 0)
            self.latest = next(others, policy)
        await self._discard(policy)

    async def close(self) -> None:
        """Stop every plugin."""
        policies, self._policies = self._policies, {}
        for policy in policies.values():
            await _stop(policy.plugins)

    async def _discard(self, policy: Policy) -> None:
        if policy.users > 0 or policy is self.latest:
            return
        if self._policies.pop(policy.revision, None) is not None:
            await _stop(policy.plugins)

    async def _add_shadow(self, policy: Policy, effective: EffectiveProfile) -> None:
        """Have a shadow run, or note why it does not: it must not keep the profiles from it."""
        try:
            shadow = self._build(effective, is_shadow=True)
            await _start([shadow])
        except ConfigurationError as error:
            log.warning("A shadow does not run: %s", error)
            policy.broken[effective.name] = str(error)
        except BaseException:
            await _stop(policy.plugins)
            raise
        else:
            policy.shadows[effective.name] = shadow

    def _build(self, effective: EffectiveProfile, *, is_shadow: bool = False) -> Profile:
        plugins = tuple(self._instance(entry, is_shadow) for entry in effective.plugins)
        return Profile(name=effective.name, plugins=plugins)

    def _instance(self, entry: EffectivePlugin, is_shadow: bool) -> EnabledPlugin:
        registered = self.registry.get(entry.name)
        if registered is None:
            known = ", ".join(self.registry)
            raise ConfigurationError(
                f"{entry.path}: this replica has no plugin {entry.name!r}; it has: {known}"
            )
        arguments = check_arguments(entry.args, registered.kind.Args, entry.path)
        try:
            plugin = registered.kind(arguments)
        except Exception as error:
            raise ConfigurationError(
                f"{entry.path}: plugin {entry.name} refuses its arguments: {error}"
            ) from error
        if isinstance(plugin, FilterPlugin) and not is_shadow:
            plugin.report_retries(self.retries.ask)
        plugin.cycle_state.limit = self._cycle_state_bytes
        enabled = EnabledPlugin(
            plugin=plugin,
            weight=entry.weight,
            aborts=entry.failure_policy == "Abort",
            time_budget=entry.time_budget_seconds,
            by_size=entry.budget_is_by_size,
        )
        if not is_shadow:
            enabled.background.on_failure = self._count_failure
        return enabled


async def _start(profiles: Iterable[Profile]) -> None:
    started: list[EnabledPlugin] = []
    for profile in profiles:
        for enabled in profile.plugins:
            try:
                await start_plugin(enabled)
            except BaseException as error:
                await _stop(started)
                if not isinstance(error, Exception):
                    raise
                raise ConfigurationError(
                    f"plugin {enabled.name} of profile {profile.name} does not start: "
                    f"{problem_of(error, enabled.plugin)}"
                ) from error
            started.append(enabled)


async def _stop(plugins: Iterable[EnabledPlugin]) -> None:
    for enabled in plugins:
        try:
            await stop_plugin(enabled)
        except Exception as error:  # noqa: BLE001 - the others must stop all the same
            problem = problem_of(error, enabled.plugin)
            log.warning("Plugin %s does not stop: %s", enabled.name, problem)
