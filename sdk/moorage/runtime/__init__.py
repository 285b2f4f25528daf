"""How a service runs plugins: built from the policy, supervised, one cycle after another."""

from moorage.runtime.asking import (
    PluginScores,
    ask_for_claim,
    ask_for_raw_scores,
    ask_for_scores,
    ask_for_verdicts,
    ask_to_normalize,
)
from moorage.runtime.binding import ask_before_bind, tell_after_bind
from moorage.runtime.cycle import PluginRun, Supervisor
from moorage.runtime.host import EnabledPlugin, PluginHost, Profile
from moorage.runtime.replica import CycleInput, Replica

__all__ = [
    "CycleInput",
    "EnabledPlugin",
    "PluginHost",
    "PluginRun",
    "PluginScores",
    "Profile",
    "Replica",
    "Supervisor",
    "ask_before_bind",
    "ask_for_claim",
    "ask_for_raw_scores",
    "ask_for_scores",
    "ask_for_verdicts",
    "ask_to_normalize",
    "tell_after_bind",
]
