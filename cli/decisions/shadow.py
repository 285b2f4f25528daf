"""Shows what is known about shadows: in words, or as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cli.shared.gateway.client import connected
from cli.shared.gateway.finding import GatewayError
from cli.shared.gateway.options import GatewayOptions
from cli.shared.output import Form, is_for_programs, write
from cli.shared.screen import Screen
from moorage.errors import ConfigurationError, suggestion

Report = Mapping[str, Any]
"""What the gateway answers about the shadow of one profile; see `gateway.whatif.shadow_tally`."""

NEWEST = 10
"""Disagreements of each profile that a table has, unless it is wide."""

NONE = (
    "no profile has a shadow: write `shadow` into one of the policy, "
    "see docs/how-to/operate/shadow.md of Moorage"
)


async def ask(options: GatewayOptions, profile: str) -> list[Report]:
    """Return the reports about the shadows of all profiles, or of one.

    Raises:
        ConfigurationError: There is none.
        GatewayError: The gateway gives no answer; the message has the next step.
    """
    async with connected(options) as gateway:
        answer = await gateway.get("/shadow")
    try:
        reports: list[Report] = answer["profiles"]
        names = [str(report["profile"]) for report in reports]
    except (KeyError, TypeError) as error:
        raise GatewayError(
            f"{gateway.url}/shadow answers something else: is it the gateway's admin port?"
        ) from error
    if not reports:
        raise ConfigurationError(NONE)
    if profile and profile not in names:
        near = suggestion(profile, names) or f"; those with one: {', '.join(names)}"
        raise ConfigurationError(f"profile `{profile}` has no shadow{near}")
    return [report for report in reports if profile in ("", report["profile"])]


SKIPS = {
    "busy": "while another cycle came or ran",
    "share": "as its share of the time was used up",
    "changed": "as the state had changed meanwhile",
    "live failed": "as the live profile had no answer",
    "stopped": "as the shadow had stopped",
}
"""Why cycles were not compared, in words."""


def show(reports: Sequence[Report], output: Form) -> None:
    """Write to stdout; as "text" with the newest disagreements only."""
    if is_for_programs(output):
        write({"profiles": reports}, output)
        return
    screen = Screen()
    for number, report in enumerate(reports):
        if number:
            screen.write("")
        _report(screen, report, wide=output == "wide")


def _report(screen: Screen, report: Report, *, wide: bool) -> None:
    screen.sentence(_headline(report), style="bold")
    for sentence in _sentences(report):
        screen.sentence(sentence)
    if report["reasons"]:
        screen.write("")
        rows = [
            (str(r["cycles"]), r["kind"], r["plugin"] or "-", r["reason"])
            for r in report["reasons"]
        ]
        screen.table(("CYCLES", "DIFFERS IN", "PLUGIN", "REASON"), rows)
    if newest := report["disagreements"][: None if wide else NEWEST]:
        screen.write("")
        screen.table(("TIME", "POD", "LIVE", "SHADOW", "WHY"), [_row(each) for each in newest])
    if more := len(report["disagreements"]) - len(newest):
        screen.sentence(f"Older ones: {more}; -o wide shows all")


def _headline(report: Report) -> str:
    compared, profile = report["compared"], report["profile"]
    if not compared:
        return f"{profile}: nothing has been compared yet"
    share = _percent(report["agreement"])
    return f"{profile}: the shadow agrees in {share} of {_cycles(compared)}"


def _sentences(report: Report) -> Iterator[str]:
    """Yield what else is worth a sentence."""
    different = report["compared"] - report["agreed"]
    if different:
        yield (
            f"In {_cycles(different)} it differs: in {report['disagreedFilter']} on which nodes "
            f"can run the pod, in {report['disagreedWinner']} on the best node."
        )
    skipped = {reason: count for reason, count in report["skipped"].items() if count}
    if skipped:
        reasons = ", ".join(f"{n} {SKIPS.get(each, each)}" for each, n in skipped.items())
        yield f"Not compared: {reasons}."
    if report["failed"]:
        cause = f", last: {report['lastFailure']}" if report["lastFailure"] else ""
        yield f"The shadow failed in {_cycles(report['failed'])}{cause}."
    if report["stopped"]:
        yield "It has stopped itself after that; another policy lets it run again."
    yield (
        f"It took {_percent(report['share'])} of the time, of {_percent(report['maxShare'])} that "
        f"it may; since {report['since']}, policy {report['policyRevision']}."
    )


def _row(each: Mapping[str, Any]) -> tuple[str, ...]:
    live, shadow = (f"{each[key]} of {each['nodes']}" for key in ("feasible", "shadowFeasible"))
    if each.get("live") or each.get("shadow"):
        live, shadow = each.get("live") or "no node", each.get("shadow") or "no node"
    pod = f"{each['namespace']}/{each['pod']}"
    return (each["time"], pod, live, shadow, "; ".join(each.get("reasons") or ()))


def _cycles(count: int) -> str:
    return f"{count} cycle" if count == 1 else f"{count} cycles"


def _percent(share: float) -> str:
    return f"{share * 100:.3g} %"
