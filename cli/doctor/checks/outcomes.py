"""Checks what comes of it: plugins that fail, scores without effect, calls without an answer."""

from cli.doctor.check import Check, Result, ok, unchecked, warning, worst
from cli.doctor.installation.installation import Installation
from cli.doctor.installation.known import Missing, known
from cli.doctor.installation.processes import Process

FEWEST = 20
"""Cycles before it counts that a plugin never has an effect."""

ROUNDED = 0.1
"""The share of cycles from which rounding matters."""


def plugins(installation: Installation) -> Result:
    """Look for plugins that fail in the background or are suspended."""
    results = []
    for pool in installation.replicas.services:
        for replica in pool.replicas:
            for name, text in replica.problems.items():
                results.append(
                    warning(
                        f"plugin {name} at {pool.service} {replica.place}: {text}",
                        "correct the plugin; its log has the traceback",
                    )
                )
    results += [
        warning(f"binder: {text}", "correct the plugin")
        for text in installation.replicas.binder.problems
    ]
    process = _gateway_process(installation)
    results += [
        warning(
            f"plugin {each.labels.get('plugin', '')} has failed in {each.value:.0f} cycles, which "
            "went on without it",
            "look for the cause in `moorage top`, and in the service's log",
        )
        for each in (process.samples if process is not None else ())
        if each.name == "moorage_plugin_failures_total" and each.value
    ]
    return worst(results, ok("no plugin reports a failure"))


def scores(installation: Installation) -> Result:
    """Look for score plugins that never affect the order, and for scores that are lost."""
    process = known(installation.report.process)
    cycles = process.total("moorage_extender_requests_total", verb="prioritize", result="ok")
    results = [
        warning(
            f"plugin {each.labels.get('plugin', '')} has affected the order of nodes in none of "
            f"{cycles:.0f} cycles: all nodes had the same score, or it skipped the pod",
            "see its scores in the inspector; where it measures, whether there are measurements",
        )
        for each in process.samples
        if each.name == "moorage_neutral_scores_total" and each.value >= cycles >= FEWEST
    ]
    rounded = process.total("moorage_rounded_scores_total")
    if cycles >= FEWEST and rounded > cycles * ROUNDED:
        results.append(
            warning(
                f"in {rounded:.0f} of {cycles:.0f} cycles rounding made worse nodes equal to the "
                "best",
                "raise the policy's scoreScale, and the weight in kube-scheduler's configuration "
                "with it",
            )
        )
    return worst(results, ok(f"scores have an effect, as far as {cycles:.0f} cycles show"))


def answers(installation: Installation) -> Result:
    """Look for calls of kube-scheduler that failed."""
    process = _gateway_process(installation)
    if process is None:
        return unchecked("the gateway's metrics cannot be read")
    name = "moorage_extender_requests_total"
    every = process.total(name)
    good = process.total(name, result="ok")
    hidden = process.total("moorage_extender_hidden_failures_total")
    if hidden:
        return warning(
            f"{hidden:.0f} prioritize calls failed, which kube-scheduler does not report: pods are "
            "placed without scores",
            "look for the failure in the gateway's log",
        )
    if every - good > every / 100:
        return warning(
            f"{every - good:.0f} of {every:.0f} calls of kube-scheduler got no good answer",
            "look at moorage_extender_requests_total by result, and at the gateway's log",
        )
    return ok(f"{good:.0f} of {every:.0f} calls of kube-scheduler got a good answer")


def _gateway_process(installation: Installation) -> Process | None:
    gateway = installation.gateway
    if isinstance(gateway, Missing) or isinstance(gateway.process, Missing):
        return None
    return gateway.process


CHECKS = (
    Check(
        name="plugins-work",
        about="No plugin fails, in cycles or in the background.",
        run=plugins,
    ),
    Check(
        name="scores-count",
        about="No score plugin is without effect in all cycles, and rounding makes few nodes "
        "equal.",
        run=scores,
    ),
    Check(
        name="calls-answered",
        about="kube-scheduler's calls get good answers; failures of prioritize are hidden there.",
        run=answers,
    ),
)
