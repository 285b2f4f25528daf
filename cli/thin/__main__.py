"""`kubectl moorage explain` and `doctor`, in the words of the gateway."""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cli.shared.gateway.pods import is_ready, name_of
from cli.thin.gateway import HttpPort, Kubectl, ThinError, context_of, moorage_pods, reached
from moorage.units.printable import printable

Answer = Mapping[str, Any]

MORE = "The Python package moorage has the whole command."

UNREAD = (
    "Not read: kube-scheduler and its configuration, the other processes, the policy's effect, "
    "versions; `moorage doctor` of the Python package moorage checks them."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code, as that of `moorage`."""
    given = options().parse_args(arguments)
    if given.command == "explain" and given.pending == bool(given.pod):
        print("give a POD, or --pending for all pods without a node", file=sys.stderr)
        return 2
    named = (("--context", given.context), ("--kubeconfig", given.kubeconfig))
    kubectl = Kubectl([word for option, value in named if value for word in (option, value)])
    try:
        with reached(kubectl, given.gateway) as gateway:
            if given.command == "doctor":
                return _doctor(kubectl, gateway, given.gateway)
            answer = _explained(kubectl, gateway, given)
    except ThinError as error:
        print(printable(f"moorage: {error}", lines=True), file=sys.stderr)
        return 2 if given.command == "doctor" else 1
    if given.output == "json":
        print(printable(json.dumps(answer, indent=2, ensure_ascii=False), lines=True))
        return 0
    for line in pending(answer) if given.pending else explanation(answer):
        print(printable(line))
    return 0


def options() -> argparse.ArgumentParser:
    """Return what reads the command line."""
    program = argparse.ArgumentParser("kubectl moorage", description=__doc__, epilog=MORE)
    commands = program.add_subparsers(dest="command", required=True)
    explain = commands.add_parser("explain", help="Explain why a pod is on its node, or has none.")
    explain.add_argument("pod", metavar="[NAMESPACE/]POD", nargs="?", default="")
    explain.add_argument("-n", "--namespace", default="", help="The pod's namespace.")
    explain.add_argument("--node", default="", help="Why not this node, or why this one?")
    explain.add_argument("--pending", action="store_true", help="Every pod without a node.")
    explain.add_argument("-o", "--output", choices=("text", "json"), default="text")
    doctor = commands.add_parser(
        "doctor", help="Say whether Moorage's pods are ready, and why not.", epilog=UNREAD
    )
    for each in (explain, doctor):
        each.add_argument("--gateway", default="moorage", help="The namespace of the gateway.")
        each.add_argument("--context", default="", help="A context of the kubeconfig.")
        each.add_argument("--kubeconfig", default="", help="How to reach the cluster.")
    return program


def _explained(kubectl: Kubectl, gateway: HttpPort, given: argparse.Namespace) -> Answer:
    if given.pending:
        only = {"namespace": given.namespace} if given.namespace else {}
        every: Answer = gateway.get("/decisions/pending", limit="1000", **only)
        return every
    before, _, name = given.pod.rpartition("/")
    namespace = before if before not in ("", "pod", "pods", "po") else given.namespace
    if not namespace:
        contexts = context_of(kubectl).get("contexts") or [{}]
        namespace = (contexts[0].get("context") or {}).get("namespace") or "default"
    node = {"node": given.node} if given.node else {}
    one: Answer = gateway.get(f"/decisions/{namespace}/{name}", **node)
    return one


def explanation(found: Answer) -> Iterator[str]:
    """Yield the lines about one pod."""
    headline = f"{found['pod']} {found['place']}: {found['reason']}"
    yield headline
    if found["since"]:
        yield f"since {found['since']}"
    if found["rejections"]:
        yield ""
        rows = [
            (str(each["nodes"]), each["by"], f"{each['reason']} {each['evicting']}".strip())
            for each in found["rejections"]
        ]
        yield from aligned([("NODES", "REJECTED BY", "REASON"), *rows])
    if found["preemption"]:
        yield f"Preemption: {found['preemption']}"
    for attempt in found["attempts"][:1]:
        shown = [each for each in attempt["why"] if each not in headline]
        yield from ("", f"Attempt {attempt['time']}: profile {attempt['profile']}")
        yield from (f"  {sentence}" for sentence in shown)
    if found["events"]:
        yield ""
        rows = [(each["time"], each["reason"], each["note"]) for each in found["events"][:5]]
        yield from aligned([("EVENT", "REASON", "NOTE"), *rows])
    if found["unreadClaims"]:
        yield f"Without ResourceClaims, which the gateway may not read. {MORE}"
    if found["next"]:
        yield ""
    yield from (f"Next: {step}" for step in found["next"])


def pending(found: Answer) -> Iterator[str]:
    """Yield the lines about all pods without a node."""
    rows = [(each["pod"], each["created"], each["reason"]) for each in found["items"]]
    if not rows:
        yield "No pod is pending."
        return
    yield from aligned([("PENDING POD", "CREATED", "WHY"), *rows])
    if more := found["pods"] - len(rows):
        are = "pod is" if more == 1 else "pods are"
        yield f"{more} more {are} pending: -n NAMESPACE shows fewer"


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield rows with the columns below each other, each in one line."""
    columns = range(len(rows[0]) - 1)
    widths = [max(len(row[column]) for row in rows) for column in columns]
    for row in rows:
        cells = [row[column].ljust(widths[column]) for column in columns]
        yield "  ".join([*cells, " ".join(row[-1].split())])


def _doctor(kubectl: Kubectl, gateway: HttpPort, namespace: str) -> int:
    """Print what is wrong; return 1 if something is."""
    ready = gateway.get("/readyz", statuses=(200, 503))
    problems = [
        f"{each['name']}: {each['reason']}"
        for each in ready.get("checks") or ()
        if each.get("reason")
    ]
    notes = [
        f"{each['name']}: {each['note']}" for each in ready.get("notes") or () if each.get("note")
    ]
    pods = moorage_pods(kubectl, namespace)
    problems += [f"pod {name_of(pod)} is not ready" for pod in pods if not is_ready(pod)]
    for level, lines in (("problem", problems), ("warning", notes)):
        for each in lines:
            print(printable(f"{level}: {each}"))
    counted = ((problems, "problem"), (notes, "warning"), (pods, "pod"))
    found = (f"{len(each)} {one}{'s' * (len(each) != 1)}" for each, one in counted)
    print(printable(", ".join(found)))
    print(printable(UNREAD))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
