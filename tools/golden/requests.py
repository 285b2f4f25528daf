"""Plays a table of requests to a real kube-apiserver; records what it answers.

`make test` compares the embedded API server with it: python -m tools.golden.requests writes it.
The cases are those of the last recording. A new one is a new entry there, without answers;
`{{2 metadata.uid}}` in a request is what the third answer of the case had there.

Of a body the table has the leaves in which both servers agree, and the paths of those in which the
embedded one is known to differ: it must answer with these and no others.
"""

import asyncio
import base64
import json
import re
import ssl
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from yarl import URL

from sandbox.apiserver import ApiServer
from tools.build import kubernetes_version
from tools.golden.scheduler import last_recording, recording
from tools.planes.real import RealPlane, real_plane

Object = dict[str, Any]
Leaves = dict[str, Any]
Answer = tuple[int, Any]

RECORDED = recording("requests")

BY_CHANCE = re.compile(
    r"(uid|resourceVersion|[cC]reationTimestamp|deletionTimestamp|lastTransitionTime|continue"
    r"|startTime|managedFields.*|selfLink)$"
)
"""Leaves that differ from run to run."""

AGE = re.compile(r"\d+[smhd]")
"""A cell of a table that shows how old something is."""

PLACE = re.compile(r"\{\{(\d+) ([^}]+)\}\}")

FLEETING = re.compile(r"/(binding|eviction|bindings|[a-z]+reviews)$")
"""What is created there is no object that stays."""


def leaves(body: Any, path: str = "") -> Leaves:
    """Return what is in a body by its path, and how long each list is, without what is chance."""
    found: Leaves = {}
    if isinstance(body, dict) and body:
        for key, value in body.items():
            found |= leaves(value, f"{path}.{key}" if path else key)
    elif isinstance(body, list):
        found[f"{path}[#]"] = len(body)
        for index, value in enumerate(body):
            found |= leaves(value, f"{path}[{index}]")
    elif not (BY_CHANCE.search(path) or (".cells[" in path and AGE.fullmatch(str(body)))):
        found[path] = body
    return {key: value for key, value in found.items() if not BY_CHANCE.search(key)}


SLOW = re.compile(r"/(priorityclasses|customresourcedefinitions|(cluster)?role(binding)?s)$")
SLOW_SECONDS = 1.0
"""How long a real server may take until what is created there counts for other requests."""


async def play(
    session: aiohttp.ClientSession, url: str, requests: Sequence[Object], slow: float = 0.0
) -> list[Answer]:
    """Send the requests of a case one after another; return status and body of each answer."""
    answers: list[Answer] = []
    pending = False  # whether something was created that does not count yet
    for each in requests:
        is_slow = each["method"] == "POST" and SLOW.search(each["path"]) is not None
        if slow and pending and not is_slow:
            await asyncio.sleep(slow)
            pending = False
        asked = _filled({key: each.get(key) for key in ("path", "body")}, answers)
        body, media = asked["body"], each.get("media") or "application/json"
        data = base64.b64decode(body["$base64"]) if _is_raw(body) else json.dumps(body).encode()
        headers = {"Content-Type": media, "Accept": each.get("accept") or "application/json"}
        async with session.request(
            each["method"],
            URL(url + asked["path"], encoded=True),
            data=None if body is None else data,
            headers=headers,
        ) as response:
            answers.append((response.status, _read(await response.read())))
        pending = pending or (is_slow and answers[-1][0] == 201)
    return answers


def _is_raw(body: Any) -> bool:
    return isinstance(body, dict) and "$base64" in body


def _read(text: bytes) -> Any:
    """Return what an answer says: JSON, the list of a watch's events, else the text."""
    for read in (json.loads, lambda lines: [*map(json.loads, lines.splitlines())]):
        with suppress(ValueError):
            return read(text)
    return text.decode("utf-8", "replace")


def _filled(value: Any, answers: Sequence[Answer]) -> Any:
    """Return a part of a request with what earlier answers had."""
    if isinstance(value, dict):
        return {key: _filled(item, answers) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, answers) for item in value]
    if isinstance(value, str):
        return PLACE.sub(lambda found: _at(answers[int(found[1])][1], found[2]), value)
    return value


def _at(body: Any, path: str) -> str:
    for key in path.split("."):
        body = body.get(key) if isinstance(body, dict) else None
    return str(body)


async def ask(plane: RealPlane) -> Object:
    """Return everything that is recorded."""
    asked = json.loads(last_recording(RECORDED).read_text())["cases"]
    connector = aiohttp.TCPConnector(ssl=_context(plane.kubeconfig("admin")))
    async with aiohttp.ClientSession(connector=connector) as session:
        found = [await _record(session, plane.url, each) for each in asked]
    return {"version": kubernetes_version(), "cases": found}


async def record() -> None:
    """Write the file that `make test` reads."""
    async with real_plane(deployed=False) as (plane, _):
        said = await ask(plane)
    lines = ",\n".join(map(_written, said["cases"]))
    RECORDED.write_text(f'{{"version": {json.dumps(said["version"])},\n"cases": [\n{lines}\n]}}\n')


async def _record(session: aiohttp.ClientSession, url: str, case: Object) -> Object:
    asked = case["requests"]
    async with ApiServer() as server, aiohttp.ClientSession() as plain:
        ours = await play(plain, server.url, asked)
    theirs = await play(session, url, asked, SLOW_SECONDS)
    await _clean(session, url, asked, theirs)
    return {"case": case["case"], "requests": list(map(_answered, asked, theirs, ours))}


def _answered(asked: Object, theirs: Answer, ours: Answer) -> Object:
    kept = {key: value for key, value in asked.items() if key not in ("status", "answer", "unlike")}
    real, own = leaves(theirs[1]), leaves(ours[1])
    alike = {key: value for key, value in real.items() if key in own and own[key] == value}
    unlike = sorted(own.keys() - alike.keys())
    return {**kept, "status": theirs[0], "answer": alike, **({"unlike": unlike} if unlike else {})}


async def _clean(
    session: aiohttp.ClientSession, url: str, asked: Sequence[Object], answers: Sequence[Answer]
) -> None:
    """Remove what a case has created, the newest first."""
    for each, (status, body) in reversed(list(zip(asked, answers, strict=True))):
        path = each["path"].partition("?")[0]
        if status != 201 or each["method"] != "POST" or FLEETING.search(path):
            continue
        gone = f"{url}{path}/{body['metadata']['name']}"
        headers = {"Content-Type": "application/merge-patch+json"}
        text = json.dumps({"metadata": {"finalizers": None}})
        async with session.patch(gone, data=text, headers=headers):
            pass
        async with session.delete(gone, json={"gracePeriodSeconds": 0}):
            pass


def _context(file: Path) -> ssl.SSLContext:
    config = yaml.safe_load(file.read_text())
    context = ssl.create_default_context(
        cafile=config["clusters"][0]["cluster"]["certificate-authority"]
    )
    user = config["users"][0]["user"]
    context.load_cert_chain(user["client-certificate"], user["client-key"])
    return context


def _written(case: Object) -> str:
    """Return a case as text with a line for each request."""
    requests = ",\n".join(json.dumps(each, sort_keys=True) for each in case["requests"])
    return f'{{"case": {json.dumps(case["case"])}, "requests": [\n{requests}\n]}}'


def cases(version: str) -> list[Object]:
    """Return what is recorded of a version."""
    text = RECORDED.with_name(f"requests-{version}.json").read_text()
    found: list[Object] = json.loads(text)["cases"]
    return found


if __name__ == "__main__":
    asyncio.run(record())
