"""What `moorage explain` writes, and what it does without a part of those whom it asks."""

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio
from msgspec.structs import replace

from cli.decisions.explain import ask_pending, explained
from cli.decisions.explain_output import age, show, show_pending
from cli.shared.gateway.options import GatewayOptions
from cli.shared.output import Form
from gateway.decisions.explanation import Explanation
from moorage.errors import ConfigurationError
from moorage_host.kube import KubeError
from tests.cli.doctor.installed import event
from tests.gateway.decisions.test_explaining import NAMES, POLICY, Given, NoThird, show_rejected
from tests.gateway.sharing import sharing
from tools.inprocess.gateway import Gateway, pod
from tools.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

NOBODY = "http://127.0.0.1:1"
CLAIMS = [{"name": "gpu", "resourceClaimName": "shared"}]

CLAIMING = "default/claiming is pending: no scheduler has tried it:"
REJECTED = "the only node does not suit it: 1 it is the third (Moorage NoThird)"

ATTEMPT = """
Attempt NOW: profile moorage, policy R, kube-scheduler offered 4 nodes, 3 feasible
NODES  PLUGIN  REASON
1  NoThird  it is the third
BEST NODES  TOTAL  Given x1
n1  74.4  74.4
n0  70.9  70.9
n2  20  20
"""

# What follows the pod, for which the form is asked of whom; a line goes on where it is indented.
WRITTEN: list[tuple[str, str, Form, str]] = [
    (
        *("both", "placed", "text"),
        f"""\
default/placed is on n1: Moorage prefers n1 to n0, 74.4 to 70.9: Given +3.5
{ATTEMPT}\
1 earlier attempt: -o wide shows it
""",
    ),
    (
        *("both", "placed", "wide"),
        f"""\
default/placed is on n1: Moorage prefers n1 to n0, 74.4 to 70.9: Given +3.5
{ATTEMPT}{ATTEMPT}""",
    ),
    (
        *("both", "rejected", "text"),
        f"""\
default/rejected is pending: {REJECTED}

NODES  REJECTED BY  REASON
1  Moorage NoThird  it is the third

Attempt NOW: profile moorage, policy R, kube-scheduler offered 1 of 4 nodes, 0 feasible

EVENT  REASON  NOTE
NOW  FailedScheduling  0/1 nodes are available

Next: change the pod or a node to what NoThird asks for; per node: `moorage explain --node`
Next: kube-scheduler tries it again when the cluster changes, at the latest after 5 min
""",
    ),
    (
        *("both", "gone", "text"),
        """\
default/gone is gone: no node suits it: NoThird rejected 1 of 1: it is the third

Attempt NOW: profile moorage, policy R, kube-scheduler offered 1 of 4 nodes, 0 feasible
NODES  PLUGIN  REASON
1  NoThird  it is the third
""",
    ),
    (
        *("both", "claiming", "text"),
        """\
default/claiming is pending: it waits for ResourceClaims that do not exist: shared
since NOW

Next: they have to be created, or spec.resourceClaims has to name others
""",
    ),
    (
        *("gateway", "claiming", "text"),
        f"""\
{CLAIMING} see whether its ResourceClaims exist, which the gateway may not read: shared
since NOW
Without pod groups and ResourceClaims:
    GET /apis/resource.k8s.io/v1/namespaces/default/resourceclaims/shared:
    cannot reach {NOBODY}: LOST

Next: a scheduler with a profile moorage has to run
Next: ResourceClaim shared has to exist
""",
    ),
    (
        *("API server", "gated", "text"),
        """\
Without the gateway: the gateway's admin port cannot be asked LOST:
    give --admin, which is https:// if the gateway has certificates
default/gated is pending: it waits for its scheduling gates: quota
since NOW

Next: whoever set a gate has to remove it from spec.schedulingGates
""",
    ),
    (
        *("API server", "claiming", "text"),
        f"""\
{CLAIMING} the gateway's admin port cannot be asked LOST:
    give --admin, which is https:// if the gateway has certificates
since NOW

Next: a scheduler with a profile moorage has to run
Next: ResourceClaim shared has to exist
""",
    ),
]


class Asked:
    """Who can be asked: both, the gateway without the API server, or the other way round."""

    def __init__(self, running: Gateway, folder: Path) -> None:
        admin, known, lost = running.admin, folder / "kubeconfig", folder / "lost"
        lost.write_text(known.read_text().replace(running.api.server.url, NOBODY))
        self.options = {
            "both": GatewayOptions(admin=admin, kubeconfig=known),
            "gateway": GatewayOptions(admin=admin, kubeconfig=lost),
            "API server": GatewayOptions(admin=NOBODY, kubeconfig=known),
            "nobody": GatewayOptions(admin=NOBODY, kubeconfig=lost),
        }


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def asked(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Asked]:
    folder = tmp_path_factory.mktemp("explain")
    async with sharing(folder, NoThird, Given, policy=POLICY) as running:
        await running.node(*NAMES)
        placed = running.api.pod("placed", schedulerName="moorage", nodeName="n1")
        for _ in range(2):
            left = (await running.filter(placed, *NAMES))["NodeNames"]
            await running.prioritize(placed, *left)
        rejected = running.api.pod("rejected", schedulerName="moorage")
        await running.filter(rejected, "n3")
        show_rejected(running, "rejected", "0/1 nodes are available: 1 it is the third. no more")
        seen = event("0/1 nodes are available", "rejected", rejected["metadata"]["uid"])
        running.api.create("/api/v1/namespaces/default/events", seen)
        running.api.pod("claiming", schedulerName="moorage", resourceClaims=CLAIMS)
        running.api.pod("gated", schedulerName="moorage", schedulingGates=[{"name": "quota"}])
        await running.filter(pod("gone"), "n3")

        async def listed() -> bool:
            return len((await running.get("/decisions/pending"))[1]["items"]) == 3

        await until(listed)
        yield Asked(running, folder / "g")


def written(capsys: pytest.CaptureFixture[str]) -> str:
    """Return what is on stdout, without what differs from run to run, and the gateway's log."""
    out = re.sub(r"\d\d:\d\d:\d\d \(\d+s ago\)", "NOW", capsys.readouterr().out)
    out = re.sub(r"\(Cannot connect .*\)|Cannot connect .*", "LOST", out)
    out = re.sub(r"policy \w{12}\b", "policy R", out)
    out = re.sub(r"(?<=\S) {3,}", "  ", out)
    return re.sub(r"^\[.*\n", "", out, flags=re.M)


@pytest.mark.parametrize(("whom", "name", "form", "text"), WRITTEN)
async def test_an_explanation_is_read_from_the_reason_to_the_next_step(
    asked: Asked, capsys: pytest.CaptureFixture[str], whom: str, name: str, form: Form, text: str
) -> None:
    show(await explained(f"default/{name}", "", asked.options[whom]), form)
    assert written(capsys) == text.replace("\n    ", " ")


@pytest.mark.parametrize(
    ("whom", "name", "node", "problem"),
    [
        ("both", "nowhere", "", "there is no pod default/nowhere"),
        ("API server", "nowhere", "", "there is no pod default/nowhere"),
        ("both", "placed", "n9", "there is no node n9"),
        ("nobody", "placed", "", "GET /api/v1/namespaces/default/pods/placed: cannot reach "),
    ],
)
async def test_what_cannot_be_explained_is_one_line(
    asked: Asked, whom: str, name: str, node: str, problem: str
) -> None:
    with pytest.raises((ConfigurationError, KubeError), match=f"^{problem}"):
        await explained(f"default/{name}", node, asked.options[whom])


async def test_programs_get_all_that_the_gateway_answers(
    asked: Asked, capsys: pytest.CaptureFixture[str]
) -> None:
    found = await explained("default/placed", "n3", asked.options["both"])
    capsys.readouterr()
    show(found, "json")
    assert msgspec.json.decode(capsys.readouterr().out, type=Explanation) == found
    assert (len(found.attempts), [each.verdict for each in found.views]) == (2, ["rejected"] * 2)


async def test_pending_pods_are_a_table(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    items, pods = await ask_pending("default", asked.options["both"])
    created = (datetime.now(UTC) - timedelta(minutes=3)).isoformat()
    found = {each.pod: replace(each, created=created) for each in items}
    rejected = found["default/rejected"]
    show_pending([rejected], 1, "text")
    assert written(capsys) == f"PENDING POD  FOR  WHY\ndefault/rejected  3m  {REJECTED}\n"
    show_pending([rejected], pods - 1, "wide")
    assert written(capsys).splitlines() == [
        "PENDING POD  FOR  SCHEDULER  ATTEMPTS  WHY",
        f"default/rejected  3m  moorage  1  {REJECTED}. Next: {rejected.next[0]}",
        "1 more pod is pending: -n NAMESPACE shows fewer",
    ]
    show_pending([replace(rejected, reason="does one run?")], 1, "wide")
    assert f"does one run? Next: {rejected.next[0]}" in written(capsys)
    show_pending(*await ask_pending("other", asked.options["both"]), "text")
    assert written(capsys) == "No pod is pending.\n"


@pytest.mark.parametrize(
    ("passed", "shown"),
    [
        ({"seconds": -5}, "0s"),
        ({"seconds": 119}, "119s"),
        ({"seconds": 121}, "2m"),
        ({"hours": 1}, "60m"),
        ({"hours": 47}, "47h"),
        ({"hours": 49}, "2d"),
    ],
)
async def test_an_age_is_written_as_kubectl_does(passed: dict[str, int], shown: str) -> None:
    assert age(datetime.now(UTC) - timedelta(**passed)) == shown
