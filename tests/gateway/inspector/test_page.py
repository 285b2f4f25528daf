"""The page in a real Chromium, with a cluster that is made up; everybody can read and use it."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from playwright.async_api import Page, expect

from tests.gateway.inspector.conftest import Scheme, all_can_use, look
from tests.gateway.inspector.fixture import BEGIN, Cluster, serving, shadow_report, summary, waiting

pytestmark = pytest.mark.asyncio(loop_scope="module")

GROUP = {
    "pod": "batch/worker-0070",
    "group": {
        "name": "ml/train",
        "minCount": 16,
        "domain": "zone-1",
        "topologyKey": "topology.kubernetes.io/zone",
    },
    "bound": 0,
    "pods": [["batch/worker-0069", "node-0002"], ["batch/worker-0070", ""]],
    "more": 14,
    "since": BEGIN.isoformat(),
    "sentence": "group ml/train does not fit: 12 of 16 placed; 4 need example.com/gpu",
    "evidence": [],
    "next": ["with 4 more nodes like n1 it starts"],
}
HIDE = """() => {
  Object.defineProperty(document, "hidden", { get: () => true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
OUTCOMES = ("bound", "bound", "binding", "unschedulable", "failed", "bind failed", "preempting")


def a_cluster(nodes: int = 60, decisions: int = 70) -> Cluster:
    newest_first = range(decisions, 0, -1)
    made = [summary(each, OUTCOMES[each % len(OUTCOMES)]) for each in newest_first]
    return Cluster(nodes=nodes, decisions=made)


@asynccontextmanager
async def shown(page: Page, cluster: Cluster, path: str = "") -> AsyncIterator[str]:
    """Serve the page and open it at a path; give its address."""
    async with serving(cluster) as url:
        await page.goto(f"{url}{path}")
        yield url


def bound_cluster(decisions: int) -> Cluster:
    return Cluster(nodes=50, decisions=[summary(each) for each in range(decisions, 0, -1)])


async def test_pods_are_listed_by_outcome_and_found_by_words(page: Page) -> None:
    async with shown(page, a_cluster()):
        await expect(page.get_by_role("button", name="all")).to_contain_text("70")
        await page.get_by_role("button", name="unschedulable").click()
        rows = page.locator(".window .row")
        await expect(rows).to_have_count(10)
        await expect(rows.first).to_contain_text("Insufficient cpu")
        await page.get_by_role("searchbox").fill("batch worker-003")
        await expect(page.locator(".foot")).to_contain_text("1 of 70 pods")
        await rows.first.click()
        await expect(page.get_by_role("heading", level=1)).to_contain_text("worker-003")


async def test_pods_that_wait_come_first_asked_or_not_and_the_address_keeps_the_search(
    page: Page,
) -> None:
    cluster = bound_cluster(7)
    gate = "it waits for its scheduling gates: example.com/quota"
    cluster.waiting = [
        waiting(1, gate),
        waiting(2, "none of 50 nodes suits it: 50 Insufficient cpu (kube-scheduler)"),
        waiting(3, "it is bound to n7; Moorage was not asked", pod="shop/quiet", node="n7"),
    ]
    async with shown(page, cluster) as url:
        rows = page.locator(".window .row")
        await expect(rows.first).to_contain_text(gate)
        await expect(page.get_by_role("button", name="waiting")).to_contain_text("2")
        await expect(page.locator(".foot")).to_contain_text("9 pods")
        await page.get_by_role("button", name="waiting").click()
        await page.get_by_role("searchbox").fill("insufficient")
        await expect(rows).to_have_count(1)
        assert page.url.endswith("#/pods?outcome=waiting&q=insufficient")
        await page.goto(f"{url}#/pods?q=quiet")
        await page.reload()
        await expect(page.get_by_role("searchbox")).to_have_value("quiet")
        await expect(rows).to_have_count(1)
        await expect(rows.first).to_contain_text("n7")


async def test_a_pod_that_does_not_exist_any_more_is_gone(page: Page) -> None:
    cluster = a_cluster(decisions=1)
    gone = summary(8, "binding", pod="made-up-1")
    cluster.decisions += [gone, summary(7, "binding", attempt=101)]
    cluster.gone = {"made-up-1"}
    async with shown(page, cluster):
        row = page.locator(".window .row", has_text="made-up")
        await expect(row).to_contain_text("gone")
        await expect(row).to_contain_text("there is no such pod any more; binding: node-0001")
        await expect(page.get_by_role("button", name="binding")).to_contain_text("1")
        other = page.locator(".window .row", has_text="worker-0007")
        await expect(other.locator(".cell").nth(5)).to_have_text("101")


async def test_an_attempt_that_is_not_kept_is_said_to_be_and_the_timeline_is_whole(
    page: Page,
) -> None:
    cluster = a_cluster()
    cluster.decisions[0]["attempt"] = 6
    async with shown(page, cluster, "#/pod/batch/worker-0070/00009999"):
        await expect(page.locator(".note")).to_contain_text("00009999 is not kept any more")
        steps = page.locator(".timeline > li")
        await expect(steps).to_have_count(4)
        await expect(steps.nth(0)).to_contain_text("Created")
        await expect(steps.nth(1)).to_contain_text("50 Insufficient cpu")
        await expect(steps.nth(2)).to_contain_text("Attempts 1 to 5are not kept any more")
        await expect(steps.nth(3)).to_contain_text("filter 2.10 ms")


async def test_the_newest_attempt_of_a_pod_stays_when_the_one_before_it_is_reported_late(
    page: Page,
) -> None:
    cluster = a_cluster(decisions=1)
    async with shown(page, cluster):
        await expect(page.locator("#live")).to_have_text("Live")
        later = (BEGIN + timedelta(seconds=500)).isoformat()
        cluster.decide(summary(1, "bound", id="newer", time=later, attempt=2))
        row = page.locator(".window .row")
        await expect(row).to_contain_text("bound")
        cluster.decide(summary(1, "failed"))
        cluster.decide(summary(2, "binding"))
        await expect(row).to_have_count(2)
        await expect(row.first).to_contain_text("bound")


async def test_decisions_that_were_missed_are_there_after_the_stream_was_lost(page: Page) -> None:
    cluster = bound_cluster(3)
    async with shown(page, cluster):
        await expect(page.locator("#live")).to_have_text("Live")
        cluster.lose()
        cluster.decisions.insert(0, summary(900))
        await expect(page.locator(".window .row").first).to_contain_text("worker-0900")


async def test_names_from_the_cluster_are_never_markup(page: Page) -> None:
    cluster = a_cluster(decisions=0)
    evil = "<img src=x onerror=alert(1)>"
    cluster.decisions.append(summary(1, reason=evil, pod=evil, node=evil))
    async with shown(page, cluster):
        await expect(page.locator(".window .row").first).to_contain_text(evil)
        assert await page.locator("main img").count() == 0


async def test_outcomes_share_out_the_pods_and_those_that_wait_are_counted_apart(
    page: Page,
) -> None:
    cluster = a_cluster()
    cluster.waiting = [waiting(1, "it waits for its scheduling gates: example.com/quota")]
    async with shown(page, cluster):
        counts = page.locator(".tabs b")
        await expect(counts.first).to_have_text("71")
        every, waits, *outcomes = map(int, await counts.all_text_contents())
        assert sum(outcomes) == every
        assert outcomes[0] == 1  # pending: no attempt is kept
        assert waits > outcomes[0]


async def test_a_frame_of_scrolling_adds_few_rows_and_all_are_there_in_the_end(page: Page) -> None:
    async with shown(page, a_cluster(nodes=5000), "#/pod/batch/worker-0070/00000046"):
        body = page.locator(".nodes .body")
        await expect(body.locator(".row").first).to_be_visible()
        most = await page.evaluate(
            """async () => {
              const body = document.querySelector(".nodes .body"), added = [];
              const seen = new MutationObserver((all) => added.push(all.reduce((sum, each) => sum + each.addedNodes.length, 0)));
              seen.observe(body.firstChild, { childList: true });
              for (let turn = 0; turn < 20; turn += 1) {
                body.scrollTop += 3000;
                await new Promise(requestAnimationFrame);
              }
              return Math.max(...added);
            }"""  # noqa: E501
        )
        assert 0 < most <= 8
        await page.wait_for_function(
            """() => {
              const body = document.querySelector(".nodes .body"), { top, bottom } = body.getBoundingClientRect();
              const rows = [...body.querySelectorAll(".row")].map((row) => row.getBoundingClientRect());
              const inside = rows.every((row, place) => !place || row.top === rows[place - 1].bottom);
              return rows.length && inside && rows[0].top <= top && rows.at(-1).bottom >= bottom;
            }"""  # noqa: E501
        )


async def test_5000_nodes_are_sorted_and_searched_and_few_are_drawn(page: Page) -> None:
    async with shown(page, a_cluster(nodes=5000), "#/pod/batch/worker-0070/00000046"):
        await expect(page.locator(".reason")).to_contain_text("node-0001 leads node-0002")
        await expect(page.locator(".funnel")).to_contain_text("Insufficient cpu")
        table = page.get_by_role("table", name="Nodes of this attempt")
        await expect(table).to_have_attribute("aria-rowcount", "5000")
        rows = table.locator(".window .row")
        assert await rows.count() < 100
        await table.get_by_role("button", name="ZoneSpread").click()
        await expect(rows.first.locator(".cell").nth(6)).to_have_text("100")
        await table.get_by_role("button", name="ZoneSpread").click()
        await expect(rows.first.locator(".cell").nth(6)).to_have_text("0")
        await page.get_by_role("searchbox").fill("node-4998")
        await expect(table).to_have_attribute("aria-rowcount", "1")
        await page.get_by_role("searchbox").fill("")
        strip = page.locator(".strip-canvas")
        await strip.click(position={"x": 30, "y": 10})
        await expect(table.locator(".row[aria-selected=true]")).to_have_count(1)
        await expect(page.locator(".strip-reading")).to_contain_text("node-")


async def test_the_map_has_a_tile_for_each_node_and_a_pod_colours_them(page: Page) -> None:
    async with shown(page, a_cluster(nodes=5000), "#/map"):
        tiles = page.locator(".t")
        await expect(tiles).to_have_count(5000)
        await expect(page.locator(".group h2")).to_have_count(3)
        await page.get_by_label("Grouped by").select_option("rack")
        await expect(page.locator(".group h2").first).to_contain_text("rack-0")
        await page.get_by_label("Pod whose verdicts").fill("batch/worker-0070")
        await page.keyboard.press("Enter")
        await expect(page.locator(".verdicts")).to_contain_text("TaintToleration")
        assert page.url.endswith("#/map?by=rack&of=cpu&pod=batch%2Fworker-0070")
        await expect(page.locator(".t[data-v=yes]")).to_have_count(1667)
        rejected = page.locator("[data-name=node-0001]")
        await rejected.hover()
        await expect(page.locator(".readout")).to_contain_text("NodeResourcesFit: Insufficient cpu")
        await expect(rejected).to_have_attribute("title", re.compile("Insufficient cpu"))
        await page.get_by_role("button", name="feasible").click()
        await expect(page.locator(".t.lit")).to_have_count(1667)
        await tiles.first.focus()
        await page.keyboard.press("ArrowRight")
        await expect(page.locator("[data-name=node-0003]")).to_be_focused()


async def test_a_node_that_kube_scheduler_rejected_itself_has_its_reason_on_the_map(
    page: Page,
) -> None:
    cluster = a_cluster(nodes=60, decisions=1)
    cluster.unnamed = 30
    reason = "none of 90 nodes suits it: 30 Insufficient cpu (kube-scheduler), 60 hot (Heat)"
    cluster.decisions[0] = summary(1, "unschedulable", reason=reason)
    async with shown(page, cluster, "#/map?pod=batch/worker-0001"):
        await expect(page.locator(".verdicts")).to_contain_text(
            "30kube-scheduler: Insufficient cpu"
        )
        await expect(page.locator(".map .legend")).to_contain_text("100 %of CPU is requested")


async def test_a_page_asked_for_no_updates_opens_no_stream_and_asks_once(page: Page) -> None:
    cluster = bound_cluster(3)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    async with serving(cluster) as url:
        await page.clock.install()
        await page.goto(f"{url}?updates=off")
        await expect(page.locator("#live")).to_have_text("Paused")
        await expect(page.locator(".window .row")).to_have_count(3)
        before = len(asked)
        await page.clock.run_for(120_000)
        assert len(asked) == before
        assert cluster.clients == []
        await page.locator("#live").click()
        await expect(page.locator("#live")).to_have_text("Live")
        assert len(cluster.clients) == 1
        await page.evaluate(HIDE)
        await expect(page.locator("#live")).to_have_text("Paused")
        before = len(asked)
        await page.clock.run_for(120_000)
        assert len(asked) == before
        assert "updates" not in page.url


async def test_an_attempt_without_scores_and_rejections_has_no_blank_heat_map(page: Page) -> None:
    cluster = bound_cluster(1)
    cluster.judged = False
    async with shown(page, cluster, "#/pod/batch/worker-0001"):
        nodes = page.locator(".nodes")
        await expect(nodes).to_contain_text("No plugin rejected or scored a node in this attempt.")
        await expect(nodes.locator("canvas")).to_have_count(0)
        await expect(nodes.get_by_role("columnheader", name="Total")).to_have_count(0)
        await expect(nodes.locator(".window .row").first).to_contain_text("feasible")


async def test_an_address_without_a_page_says_so(page: Page) -> None:
    async with shown(page, a_cluster(), "#/nosuch"):
        await expect(page.get_by_role("alert")).to_contain_text("There is no page nosuch")
        await all_can_use(page)


async def test_the_keyboard_suffices(page: Page) -> None:
    async with shown(page, bound_cluster(70)):
        await expect(page.locator(".window .row").first).to_be_visible()
        await page.keyboard.press("?")
        await expect(page.get_by_role("dialog")).to_contain_text("next, previous row")
        await page.keyboard.press("Escape")
        await page.keyboard.press("/")
        await expect(page.get_by_role("searchbox")).to_be_focused()
        await page.keyboard.type("worker-00")
        await page.keyboard.press("Escape")
        for key in "jjjk":
            await page.keyboard.press(key)
        selected = page.locator(".row[aria-selected=true]")
        await expect(selected).to_contain_text("worker-0069")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", level=1)).to_contain_text("worker-0069")
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("button", name="all")).to_be_visible()
        await expect(page.get_by_role("searchbox")).to_have_value("worker-00")


async def test_the_theme_is_chosen_and_kept(page: Page) -> None:
    async with serving(a_cluster()) as url:
        await page.emulate_media(color_scheme="light")
        await page.goto(url)
        for theme in ("light", "dark"):
            await page.keyboard.press("t")
            await expect(page.locator("html")).to_have_attribute("data-theme", theme)
        dark = re.compile(r"rgb\(19, 21, 25\)")
        await expect(page.locator("body")).to_have_css("background-color", dark)
        await page.reload()
        await expect(page.locator("body")).to_have_css("background-color", dark)


async def test_who_skips_to_the_content_stays_on_the_page(page: Page) -> None:
    async with shown(page, a_cluster(), "#/groups"):
        await expect(page.get_by_role("heading", level=1)).to_have_text("Groups")
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        await expect(page.locator("main")).to_be_focused()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Groups")


async def test_a_name_that_is_cut_off_keeps_its_end_unless_it_has_a_domain(page: Page) -> None:
    cluster = a_cluster(decisions=0)
    pod = "payments-api-with-a-very-long-name-in-production-7c9f6d4b5-x2k4p"
    cluster.decisions = [summary(1, pod=pod, node="ip-10-0-12-34.eu-west-1.compute.internal")]
    async with shown(page, cluster):
        parts = page.locator(".cut > span")
        await expect(parts.nth(1)).to_have_text(pod[-12:])
        is_cut = "document.querySelector('.cut > span').scrollWidth > 200"
        await page.wait_for_function(is_cut)
        await expect(parts.nth(2)).to_have_text("ip-10-0-12-34.eu-west-1.compute.internal")


async def test_groups_show_which_waits_for_what_since_when(page: Page) -> None:
    cluster = a_cluster()
    cluster.groups = [GROUP]
    async with shown(page, cluster, "#/groups"):
        group = page.locator(".list > li")
        for part in (str(GROUP["sentence"]), "with 4 more nodes", "for 2", "zone zone-1"):
            await expect(group).to_contain_text(part)
        await group.get_by_text("16 pods").click()
        await expect(group.get_by_role("link", name="node-0002")).to_be_visible()
        await group.get_by_role("link", name="worker-0070").click()
        await expect(page.get_by_role("heading", level=1)).to_contain_text("worker-0070")


async def test_a_shadow_shows_how_often_it_disagrees_and_leads_to_the_decision(page: Page) -> None:
    cluster = a_cluster()
    async with shown(page, cluster, "#/shadow"):
        await expect(page.locator("main")).to_contain_text("No shadow is configured")
        cluster.shadows = [shadow_report()]
        await page.reload()
        await expect(page.locator(".tiles")).to_contain_text("93.8 %")
        await expect(page.locator(".list")).to_contain_text("ZoneSpread adds 4.1")
        await page.get_by_role("link", name="batch/worker-0070").click()
        await expect(page.get_by_role("heading", level=1)).to_contain_text("worker-0070")


async def test_a_pod_without_a_decision_has_the_reason_and_a_way_back(page: Page) -> None:
    # The browser itself writes an error about the answer into its console.
    await page.add_init_script("window.fetch = async (path) => new Response('{}', {status: 404})")
    async with shown(page, a_cluster(), "#/pod/none/such"):
        await expect(page.get_by_role("alert")).to_contain_text("404")
        await all_can_use(page)
        await page.get_by_role("link", name="Pods").last.click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Pods")


async def test_what_is_no_character_is_written_out(page: Page) -> None:
    cluster = a_cluster(decisions=1)
    cluster.waiting = [waiting(1, "too \x1b[2J hot \u202eyllaer")]
    async with shown(page, cluster, "#/pods"):
        row = page.locator(".window .row", has_text="waiting-0001")
        await expect(row).to_contain_text(r"too \u001b[2J hot \u202eyllaer")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_every_page_can_be_read_and_used_by_everybody(page: Page, scheme: Scheme) -> None:
    cluster = a_cluster(decisions=30)
    cluster.waiting = [waiting(1, "it waits for its scheduling gates: example.com/quota")]
    cluster.shadows = [shadow_report()]
    cluster.groups = [GROUP]
    await look(page, scheme)
    async with serving(cluster) as url:
        for path, wanted in (
            ("pods", ".window .row"),
            ("pod/shop/worker-0030", ".nodes .window .row"),
            ("map?pod=shop/worker-0030", ".verdicts button"),
            ("groups", ".why li"),
            ("shadow", ".tiles"),
        ):
            await page.goto(f"{url}#/{path}")
            await page.reload()
            await expect(page.locator(wanted).first).to_be_visible()
            await all_can_use(page)
