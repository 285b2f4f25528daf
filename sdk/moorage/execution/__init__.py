"""Runs plugins in one cycle or bind: supervised, within their time budget, with checked answers."""

from moorage.execution.asking import (
    PluginScores,
    ask_for_claim,
    ask_for_raw_scores,
    ask_for_scores,
    ask_for_verdicts,
    ask_to_normalize,
)
from moorage.execution.binding import ask_before_bind, ask_to_permit, call_after_bind, permit_key_of
from moorage.execution.cycle import PluginRun, Supervisor, ask_each, joined_runs
from moorage.execution.enabled import EnabledPlugin, Profile, by_hand, start_plugin, stop_plugin
from moorage.execution.filtering import FilterRun, PluginRejection, run_filter_plugins
from moorage.execution.overruns import owner_of
from moorage.execution.trial import ask_for_group, tried
from moorage.groups import ReasonNodes, Trial

__all__ = [
    "EnabledPlugin",
    "FilterRun",
    "PluginRejection",
    "PluginRun",
    "PluginScores",
    "Profile",
    "ReasonNodes",
    "Supervisor",
    "Trial",
    "ask_before_bind",
    "ask_each",
    "ask_for_claim",
    "ask_for_group",
    "ask_for_raw_scores",
    "ask_for_scores",
    "ask_for_verdicts",
    "ask_to_normalize",
    "ask_to_permit",
    "by_hand",
    "call_after_bind",
    "joined_runs",
    "owner_of",
    "permit_key_of",
    "run_filter_plugins",
    "start_plugin",
    "stop_plugin",
    "tried",
]
