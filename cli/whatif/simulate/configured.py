"""The configuration of the kube-scheduler in a simulation: a given one, else the shipped one.

A given one is used as kube-scheduler would use it. So pods of its profiles that the policy does not
name are placed by these profiles, without Moorage's plugins; and what the policy names and the file
does not, which no kube-scheduler would place, runs as the first profile of the file does.
"""

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from cli.up.processes.stack import scheduler_config
from moorage.errors import ConfigurationError
from moorage_host.kube_scheduler import (
    ExtenderConfig,
    KubeSchedulerConfiguration,
    load_configuration,
    parse_configuration,
)


def configured(
    file: Path | None, profiles: Sequence[str], score_scale: int
) -> tuple[KubeSchedulerConfiguration, list[str]]:
    """Return the configuration, with the profiles of the policy first, and what people should know.

    Args:
        file: A KubeSchedulerConfiguration; None for the shipped one.
        profiles: The schedulerNames that the policy names.
        score_scale: The highest score that the policy sends.

    Raises:
        ConfigurationError: kube-scheduler would not start with it, or it has not one extender that
            filters or scores.
    """
    if file is None:
        return parse_configuration(scheduler_config(profiles, score_scale)), []
    configuration = load_configuration(file)
    entries = sum(_filters_or_scores(each) for each in configuration.extenders)
    if entries != 1:
        raise ConfigurationError(
            f"{file}: extenders: must have one for Moorage that filters or scores, not {entries}; "
            "`moorage config extender` prints it"
        )
    own = {profile.scheduler_name: profile for profile in configuration.profiles}
    first = configuration.profiles[0]
    named = [own.get(name) or replace(first, scheduler_name=name) for name in profiles]
    others = [profile for name, profile in own.items() if name not in profiles]
    notes = [
        f"{file} has no profile {name}: its pods are placed as by {first.scheduler_name}"
        for name in profiles
        if name not in own
    ] + [
        f"the policy has no profile {each.scheduler_name}, which {file} has: its pods pass all "
        "filters of Moorage and get no scores"
        for each in others
    ]
    return replace(configuration, profiles=(*named, *others)), notes


def asked(configuration: KubeSchedulerConfiguration) -> ExtenderConfig:
    """Return the extender that filters or scores."""
    return next(each for each in configuration.extenders if _filters_or_scores(each))


def _filters_or_scores(extender: ExtenderConfig) -> bool:
    return bool(extender.filter_verb or extender.prioritize_verb)
