"""Checks what both ends report: Events of kube-scheduler, and the gateway's record of callers."""

from collections.abc import Iterator
from datetime import datetime

from cli.doctor.check import Check, Result, listed, ok, problem, unchecked, warning
from cli.doctor.installation.installation import Installation
from cli.doctor.installation.known import Missing, NotReadError
from cli.doctor.installation.objects import Object
from cli.doctor.installation.pods import name_of

HINTS = {
    "no such host": "write the Service's cluster IP into urlPrefix, and tlsConfig.serverName",
    "connection refused": "see whether the gateway is ready, and compare the port in urlPrefix",
    "certificate signed by unknown authority": "give kube-scheduler the ca.crt of the gateway's "
    "authority as tlsConfig.caFile, and restart it: it reads that file once",
    "certificate is valid for": "set tlsConfig.serverName to moorage-gateway",
    "certificate has expired": "renew the certificates",
    "deadline exceeded": "look for a NetworkPolicy or firewall between kube-scheduler and gateway, "
    "then for slow plugins in `moorage top`",
    "EOF": "give kube-scheduler a client certificate of the gateway's authority: with TLS 1.3 a "
    "refused one looks like this",
    "code 403": "issue kube-scheduler's certificate for a name in --scheduler-identity",
    "code 404": "compare the path and the verbs in urlPrefix with the gateway's --extender-prefix",
}
"""What to change, by what kube-scheduler reports."""

EVENT_SECONDS = 1.0
"""How exact the time of an Event is."""


def events(installation: Installation) -> Result:
    """Read what kube-scheduler itself reports of calls that failed."""
    prefixes = [entry.extender.url_prefix.rstrip("/") for entry in installation.entries]
    found = [
        each
        for each in installation.objects.of("events")
        if any(prefix in str(each.get("message", "")) for prefix in prefixes)
    ]
    if not found:
        return ok("no Event of kube-scheduler names a call of the extender that failed")
    newest = max(found, key=_seen)
    message = " ".join(str(newest["message"]).split())
    change = next((hint for text, hint in HINTS.items() if text in message), "")
    result = problem if _is_new(installation, newest) else warning
    involved = newest.get("involvedObject") or {}
    pod = f"{involved.get('namespace', '')}/{involved.get('name', '')}"
    return result(
        f"{len(found)} Events report failed calls, last {_seen(newest)} about {pod}: "
        f"{message[:300]}",
        change or "look at the gateway's log at that time",
    )


def called(installation: Installation) -> Result:
    """Read who called the extender last."""
    callers = [each for each in installation.replicas.callers if not each.refused]
    if callers:
        newest = min(callers, key=lambda each: each.seconds_ago)
        whose = _whose(installation, newest.caller)
        return ok(
            f"last call {newest.seconds_ago:.0f} s ago: {newest.verb} by {newest.caller}{whose}"
        )
    waiting = _waiting(installation)
    if waiting:
        return problem(
            f"{listed(waiting)} waits for a scheduler, and nobody has called the gateway since it "
            "started",
            "look at kube-scheduler's log, and at the other checks of this group",
        )
    return warning(
        "nobody has called the gateway since it started, and no pod waits for it",
        f"create a pod with schedulerName: {_profile(installation)}, and run this again",
    )


def refused(installation: Installation) -> Result:
    """Read which callers the extender refused."""
    others = [each for each in installation.replicas.callers if each.refused]
    identities = ", ".join(installation.own.scheduler_identities)
    if others:
        newest = min(others, key=lambda each: each.seconds_ago)
        return problem(
            f"the gateway refused {newest.calls} calls of {newest.caller}, last "
            f"{newest.seconds_ago:.0f} s ago: it is for {identities}",
            "issue kube-scheduler's certificate for that name, or add its name to the gateway's "
            "--scheduler-identity",
        )
    gateway = installation.gateway
    if isinstance(gateway, Missing) or isinstance(gateway.process, Missing):
        return unchecked("the gateway's metrics cannot be read")
    failed = gateway.process.total(
        "moorage_http_refused_total", port="extender", reason="handshake"
    )
    if failed:
        return warning(
            f"{failed:.0f} connections to the extender ended in the TLS handshake",
            "see the gateway's log for the cause; if it is kube-scheduler, its client certificate "
            "is missing, expired or of another authority",
        )
    return ok("the extender refused no caller")


def _whose(installation: Installation, caller: str) -> str:
    """Return which kube-scheduler has the address of a caller."""
    for scheduler in installation.schedulers:
        for pod in scheduler.pods:
            status = pod.get("status") or {}
            if any(status.get(k) == caller.rpartition(" ")[2] for k in ("podIP", "hostIP")):
                return f", which is {name_of(pod)}"
    return ""


def _waiting(installation: Installation) -> list[str]:
    """Return the pods that wait and name a profile of the policy."""
    try:
        profiles = installation.policy.profiles
        pods = installation.objects.of("waiting pods")
    except NotReadError:
        return []
    return [name_of(pod) for pod in pods if pod["spec"].get("schedulerName") in profiles]


def _profile(installation: Installation) -> str:
    try:
        return next(iter(installation.policy.profiles), "moorage")
    except NotReadError:
        return "moorage"


def _seen(event: Object) -> str:
    series = event.get("series") or {}
    times: Iterator[str | None] = iter(
        (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    )
    return next((each for each in times if each), "")


def _is_new(installation: Installation, event: Object) -> bool:
    """Whether an Event may be newer than the last call that the gateway answered."""
    try:
        ages = [c.seconds_ago for c in installation.replicas.callers if not c.refused]
        seen = datetime.fromisoformat(_seen(event))
    except (NotReadError, ValueError):
        return True
    age = (installation.now - seen).total_seconds()
    return not ages or age <= min(ages) + EVENT_SECONDS


CHECKS = (
    Check(
        name="extender-events",
        about="No Event of kube-scheduler reports a call of the extender that failed.",
        run=events,
    ),
    Check(
        name="extender-called",
        about="The gateway's own record of callers: kube-scheduler has called, when and as whom.",
        run=called,
    ),
    Check(
        name="extender-refused",
        about="The gateway has refused no caller and no connection.",
        run=refused,
    ),
)
