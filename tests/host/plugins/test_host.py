import asyncio
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

import pytest

from moorage import Arguments, ConfigurationError, FilterPlugin, Meta, Node, Pod, Rejection
from moorage.errors import UnknownNameError
from moorage_host.plugins import PluginHost
from moorage_host.plugins.host import MOST_POLICIES
from moorage_host.plugins.registry import Registry
from moorage_host.policy.effective import (
    EffectivePlugin,
    EffectivePolicy,
    EffectiveProfile,
    decode_effective,
    encode_effective,
)
from tests.passing import Passes


class Tracked(Passes):
    """Notes its starts and stops."""

    events: ClassVar[list[str]] = []

    class Args(Arguments):
        """What to do at the start."""

        label: Annotated[str, Meta(min_length=1)] = "x"
        fails: bool = False

        def __post_init__(self) -> None:
            if self.label == "forbidden":
                raise ValueError("that label is forbidden")

    async def start(self) -> None:
        await asyncio.sleep(0)
        if self.args.fails:
            raise OSError("no connection")
        self.events.append(f"start {self.args.label}")

    async def stop(self) -> None:
        self.events.append(f"stop {self.args.label}")
        if self.args.label == "clings":
            raise OSError("still busy")


@pytest.fixture(autouse=True)
def log() -> Iterator[list[str]]:
    Tracked.events.clear()
    yield Tracked.events
    Tracked.events.clear()


@pytest.fixture
def host() -> PluginHost:
    return PluginHost(Registry(FilterPlugin, [Tracked]))


def policy(*args: dict[str, Any], name: str = "Tracked") -> bytes:
    plugins = tuple(
        EffectivePlugin(
            name=name,
            args=one,
            failure_policy="Ignore",
            time_budget_seconds=0.5,
            path=f"p.yaml:7: args[{number}]",
        )
        for number, one in enumerate(args)
    )
    return encode_effective(
        EffectivePolicy(profiles=(EffectiveProfile(name="m", plugins=plugins),))
    )


async def test_sessions_of_one_revision_share_its_plugins(host: PluginHost, log: list[str]) -> None:
    first, second = await asyncio.gather(
        host.use("r1", policy({"label": "a"})), host.use("r1", policy({"label": "a"}))
    )
    assert first is second
    assert log == ["start a"]
    with pytest.raises(UnknownNameError, match="unknown profile 'x'; profiles here: m"):
        first.profile("x")
    with pytest.raises(UnknownNameError, match=r"'Y' is not enabled here.*enabled: Tracked"):
        first.profile("m", "Y")


async def test_an_old_revision_stops_with_its_last_session(
    host: PluginHost, log: list[str]
) -> None:
    old = await host.use("r1", policy({"label": "a"}))
    await host.use("r1", policy({"label": "a"}))
    new = await host.use("r2", policy({"label": "b"}))
    assert log == ["start a", "start b"]
    await host.release(old)
    assert log == ["start a", "start b"], "another session still uses it"
    await host.release(old)
    assert log == ["start a", "start b", "stop a"]
    await host.release(new)
    assert log[-1] == "stop a", "the latest stays, in case its gateway comes back"
    assert await host.use("r2", policy({"label": "b"})) is new


async def test_closing_stops_everything_even_what_does_not_want_to(
    host: PluginHost, log: list[str]
) -> None:
    await host.use("r1", policy({"label": "clings"}, {"label": "b"}))
    await host.close()
    assert log == ["start clings", "start b", "stop clings", "stop b"]


class Loops(FilterPlugin):
    """Never comes back from `start`, and waits for nothing in it."""

    async def start(self) -> None:
        while True:
            pass

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        return None


async def test_a_start_that_never_returns_is_ended_with_its_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("moorage.execution.enabled.LOAD_SECONDS", 0.1)
    host = PluginHost(Registry(FilterPlugin, (Loops,)))
    with pytest.raises(ConfigurationError, match=r"it has not started after .* \(\S+test_host.py:"):
        await host.use("r1", policy({}, name="Loops"))
    assert "Loops" in host.policy_note()


async def test_a_plugin_that_does_not_start_takes_those_before_it_down_and_no_other(
    host: PluginHost, log: list[str]
) -> None:
    broken = policy({"label": "a"}, {"label": "b", "fails": True}, {"label": "c"})
    with pytest.raises(
        ConfigurationError, match="plugin Tracked of profile m does not start: OSError: no conn"
    ):
        await host.use("r1", broken)
    assert log == ["start a", "stop a"]
    await host.use("r1", policy({"label": "fixed"}))
    assert log[-1] == "start fixed"


async def test_policies_that_nobody_ends_are_bounded(host: PluginHost) -> None:
    held = [await host.use(f"r{i}", policy({"label": "a"})) for i in range(MOST_POLICIES)]
    with pytest.raises(ConfigurationError, match="runs 32 policies already"):
        await host.use("more", policy({"label": "a"}))
    await host.release(held[0])
    assert (await host.use("more", policy({"label": "a"}))).revision == "more"


def with_shadow(live: dict[str, Any], *shadow: dict[str, Any], name: str = "Tracked") -> bytes:
    effective = decode_effective(policy(live))
    (profile,) = decode_effective(policy(*shadow, name=name)).profiles
    shadows = (EffectiveProfile(name="m/shadow", plugins=profile.plugins),)
    return encode_effective(EffectivePolicy(profiles=effective.profiles, shadows=shadows))


async def test_a_shadow_has_plugins_of_its_own(host: PluginHost, log: list[str]) -> None:
    running = await host.use("r1", with_shadow({"label": "a"}, {"label": "b"}))
    assert log == ["start a", "start b"]
    (live,), (shadow,) = running.profile("m").plugins, running.profile("m/shadow").plugins
    assert shadow.plugin is not live.plugin
    assert shadow.overruns is not live.overruns
    assert isinstance(shadow.plugin, Tracked)
    followed = host.retries.follow()
    asked = asyncio.ensure_future(anext(followed))
    await asyncio.sleep(0)
    shadow.plugin.retry_rejected("of the shadow")
    live_plugin = live.plugin
    assert isinstance(live_plugin, Tracked)
    live_plugin.retry_rejected("of the profile")
    assert await asked == ("Tracked", "of the profile", "")
    await host.close()
    assert log[2:] == ["stop a", "stop b"]


@pytest.mark.parametrize(
    ("shadow", "name", "problem"),
    [
        ({"fails": True}, "Tracked", "no connection"),
        ({"label": "forbidden"}, "Tracked", "that label is forbidden"),
        ({}, "Nothing", "this replica has no plugin 'Nothing'"),
    ],
)
async def test_a_shadow_that_cannot_run_keeps_no_profile_from_it(
    host: PluginHost, log: list[str], shadow: dict[str, Any], name: str, problem: str
) -> None:
    running = await host.use("r1", with_shadow({"label": "a"}, {"label": "b"}, shadow, name=name))
    assert len(running.profile("m").plugins) == 1
    with pytest.raises(ConfigurationError, match=problem):
        running.profile("m/shadow")
    await host.close()
    assert sorted(log) in (
        ["start a", "start b", "stop a", "stop b"],  # it began to start
        ["start a", "stop a"],
    )
