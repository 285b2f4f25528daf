"""The page as a real gateway serves it."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from tests.gateway.inspector.conftest import Scheme, all_can_use, look, noting_problems
from tools.inprocess.certificates import authority, write_folder
from tools.inprocess.gateway import Gateway, bind, gateway, plane, pod

pytestmark = pytest.mark.asyncio(loop_scope="module")

POLICY = """
apiVersion: moorage.io/v1alpha1
kind: MoorageConfiguration
profiles:
- plugins:
    multiPoint: {enabled: [{name: InTree}]}
    score:
      enabled:
      - name: ImageLocality
        weight: 7
"""


OURS = authority()
NODES = ("n1", "n2")


def a_gateway(folder: Path, nodes: Sequence[str] = NODES) -> AbstractAsyncContextManager[Gateway]:
    return plane(folder, policy=POLICY, nodes=nodes, inspector_interval=0.2)


def requesting(cpu: str) -> dict[str, Any]:
    return {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}


async def decide(running: Gateway, name: str, cpu: str = "1") -> None:
    asked = pod(name, containers=[requesting(cpu)])
    answer = await running.filter(asked, *NODES)
    if answer["NodeNames"]:
        await running.prioritize(asked, *answer["NodeNames"])


async def test_pods_are_there_live_and_lead_to_all_their_nodes(page: Page, tmp_path: Path) -> None:
    async with a_gateway(tmp_path) as running:
        await decide(running, "first")
        await page.goto(f"{running.admin}/")
        await expect(page.locator(".window .row")).to_have_count(1)
        await expect(page.locator("#live")).to_have_text("Live")
        await decide(running, "large", cpu="64")
        row = page.locator(".window .row").first
        await expect(row).to_contain_text("default/large")
        await expect(row).to_contain_text("unschedulable")
        await row.click()
        await expect(page.locator(".reason")).to_contain_text("Insufficient cpu")
        await expect(page.locator(".nodes .window .row")).to_have_count(2)
        await expect(page.locator(".nodes .window .row").first).to_contain_text("NodeResourcesFit")


async def test_nodes_that_tie_are_called_ties_on_every_page(page: Page, tmp_path: Path) -> None:
    nodes = (*NODES, "n3")
    async with a_gateway(tmp_path, nodes) as running:
        placed = running.api.pod("p", schedulerName="moorage")
        await running.filter(placed, *nodes)
        await running.prioritize(placed, *nodes)
        inspector = f"{running.admin}/inspector/"
        await page.goto(f"{inspector}#/pod/default/p")
        ranks = page.locator(".nodes .window .row [title='tied for number 1']")
        await expect(ranks).to_have_text(["1=", "1=", "1="])
        await page.locator(".nodes canvas").hover()
        await expect(page.locator(".nodes")).to_contain_text(" · tied for number 1, total ")
        await page.get_by_text("What if", exact=True).click()
        await expect(page.locator(".whatif .facts")).to_contain_text("several tie")
        await expect(page.locator(".best li[value='1']", has_text="(tied)")).to_have_count(3)
        await page.goto(f"{inspector}#/map?pod=default/p")
        await page.locator(".t").last.hover()
        await expect(page.locator(".readout")).to_contain_text("feasible, tied for number 1")


async def test_nodes_show_what_is_on_them(page: Page, tmp_path: Path) -> None:
    async with a_gateway(tmp_path) as running:
        running.api.pod("there", nodeName="n2", containers=[requesting("2")])
        await page.goto(f"{running.admin}/inspector/#/nodes")
        await page.get_by_role("button", name="CPU").click()
        await expect(page.locator(".window .row")).to_have_count(2)
        await page.reload()
        row = page.locator(".window .row", has_text="n2")
        await expect(row).to_contain_text("50 %")
        await row.click()
        await expect(page.locator(".window .row")).to_contain_text("default/there")
        await expect(page.locator(".funnel")).to_contain_text("2 / 4")


async def test_the_policy_names_the_line_of_each_value(page: Page, tmp_path: Path) -> None:
    async with a_gateway(tmp_path) as running:
        await page.goto(f"{running.admin}/inspector/#/policy")
        weight = page.locator(".policy tr", has_text="weight: 7")
        await expect(weight).to_contain_text("policy.yaml:10")
        fit = page.locator(".policy tr", has_text="- name: NodeResourcesFit").first
        await expect(fit).to_contain_text("policy.yaml:6, by InTree")
        await page.set_viewport_size({"width": 360, "height": 740})
        box = await weight.bounding_box()
        assert box is not None
        assert box["height"] < 50  # a line or two, with the origin beside it
        await page.get_by_label("only what the file sets").check()
        await expect(page.locator(".policy tr:visible", has_text="default")).to_have_count(0)


async def test_replicas_and_plugins_are_shown_with_what_they_did(
    page: Page, tmp_path: Path
) -> None:
    async with a_gateway(tmp_path) as running:
        await page.goto(f"{running.admin}/inspector/#/replicas")
        await expect(page.locator("main")).to_contain_text("scorer 1 replica")
        await decide(running, "large", cpu="64")
        await page.goto(f"{running.admin}/inspector/#/plugins")
        fit = page.locator(".plain tr", has_text="NodeResourcesFit")
        await expect(fit.locator("td").nth(4)).to_have_text("2")
        await expect(page.locator(".chart canvas")).to_have_count(2)
        await page.get_by_role("button", name="Bind").click()
        await expect(page.locator(".empty")).to_have_text("No plugin was asked in this time.")
        await expect(page.locator(".chart")).to_have_count(0)
        await page.get_by_role("button", name="Filter").click()
        await page.set_viewport_size({"width": 390, "height": 844})
        box = await fit.locator("td").last.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= 390  # a card, not a cut table


async def test_the_page_of_a_pod_follows_its_bind(page: Page, tmp_path: Path) -> None:
    async with a_gateway(tmp_path) as running:
        await decide(running, "p")
        await page.goto(f"{running.admin}/inspector/#/pod/default/p")
        await expect(page.locator("h1 .badge")).to_have_text("binding")
        assert await bind(running, pod("p")) != ""  # there is no binder
        await expect(page.locator("h1 .badge")).to_have_text("bind failed")


async def test_what_if_stands_beside_what_is(page: Page, tmp_path: Path) -> None:
    async with a_gateway(tmp_path) as running:
        running.api.pod("big", schedulerName="moorage", containers=[requesting("64")])
        await page.goto(f"{running.admin}/inspector/#/pod/default/big")
        await page.get_by_text("What if", exact=True).click()
        now, then = page.locator(".sides section").first, page.locator(".sides section").last
        await expect(now).to_contain_text("2 Insufficient cpu (NodeResourcesFit)")
        await page.get_by_label("Plugin that is off").select_option("NodeResourcesFit")
        await page.get_by_label("More nodes").fill("3")
        await page.get_by_label("Node to copy").fill("n1")
        await page.get_by_role("button", name="Compare").click()
        await expect(then).to_contain_text("5 of 5")
        await expect(now).to_contain_text("0 of 2")


async def test_a_pod_that_moorage_was_not_asked_about_colours_nodes_once_it_is(
    page: Page, tmp_path: Path
) -> None:
    async with a_gateway(tmp_path) as running:
        running.api.pod("typo", schedulerName="moorag", containers=[requesting("64")])
        await page.goto(f"{running.admin}/inspector/#/map?pod=default/typo")
        verdicts = page.locator(".verdicts")
        await expect(verdicts).to_contain_text("2not asked")
        await expect(page.locator(".t[data-v=none]")).to_have_count(2)
        await page.get_by_role("button", name="What would Moorage say now?").click()
        await expect(page.locator(".reason")).to_contain_text("profile moorage of Moorage")
        await expect(verdicts).to_contain_text("2NodeResourcesFit: Insufficient cpu")
        await expect(page.locator('.t[data-v="0"]')).to_have_count(2)


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_everybody_can_use_every_page_of_a_gateway(
    page: Page, tmp_path: Path, scheme: Scheme
) -> None:
    await look(page, scheme)
    async with a_gateway(tmp_path) as running:
        running.api.pod("typo", schedulerName="moorag")
        await decide(running, "p")
        await decide(running, "large", cpu="64")
        for path, wanted in (
            ("pods?outcome=waiting", ".window .row"),
            ("pod/default/p", ".nodes .window .row"),
            ("pod/default/p/99", ".note"),
            ("pod/default/typo", ".why li"),
            ("groups", ".note"),
            ("nodes", ".window .row"),
            ("node/n1", ".meter"),
            ("map?pod=default/typo", ".t"),
            ("plugins", ".chart"),
            ("replicas", ".tiles"),
            ("policy", ".policy"),
            ("shadow", ".note"),
        ):
            await page.goto(f"{running.admin}/inspector/#/{path}")
            await expect(page.locator(wanted).first).to_be_visible()
            if path == "pod/default/typo":
                await page.get_by_text("What if", exact=True).click()
                await expect(page.get_by_role("button", name="Compare")).to_be_visible()
            await all_can_use(page)


async def test_with_certificates_the_page_is_for_operators(
    browser: Browser, tmp_path: Path
) -> None:
    tls = write_folder(tmp_path, OURS, "moorage-gateway", "moorage-operator", "127.0.0.1")
    async with gateway(tmp_path, tls=tls) as running:
        certificate: Any = {
            "origin": running.admin,
            "certPath": tls / "tls.crt",
            "keyPath": tls / "tls.key",
        }
        nobody = await browser.new_page(ignore_https_errors=True)
        refused = await nobody.goto(f"{running.admin}/inspector/")
        assert refused is not None
        assert refused.status == 401
        operator = await browser.new_page(
            ignore_https_errors=True, client_certificates=[certificate]
        )
        with noting_problems(operator) as problems:
            await operator.goto(f"{running.admin}/inspector/")
            await expect(operator.locator("#live")).to_have_text("Live")
        assert problems == []


async def test_a_gateway_that_knows_nothing_yet_says_so(page: Page, tmp_path: Path) -> None:
    async with plane(tmp_path, policy=POLICY, inspector_interval=0.2) as running:
        for path, told in (
            ("pods", "No pod waits, and Moorage was not asked about one yet."),
            ("groups", "No group was tried yet."),
            ("nodes", "The gateway knows no node"),
            ("map", "The gateway knows no node."),
            ("plugins", "No plugin was asked in this time."),
            ("shadow", "No shadow is configured."),
        ):
            await page.goto(f"{running.admin}/inspector/#/{path}")
            await expect(page.locator("main")).to_contain_text(told)
