"""Asks a real kube-apiserver which texts are amounts, for a table of texts; records its answers.

What `make test` compares our reader with is recorded by: python -m tools.golden.quantities
The texts are those of the last recording. A new one is a new key there, with any value.
"""

import asyncio
import json

from moorage_host.kube import KubeClient
from tools.inprocess.api import send
from tools.planes.embedded import ROOT
from tools.planes.real import real_plane

RECORDED = ROOT / "tests" / "data" / "quantities.json"

PODS = "/api/v1/namespaces/default/pods?dryRun=All"


async def ask(client: KubeClient, text: str) -> str | None:
    """Return what the API server makes of a text as a pod's memory; None if it is no amount."""
    resources = {"limits": {"memory": text}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "asked"},
        "spec": {"containers": [{"name": "c", "image": "x", "resources": resources}]},
    }
    try:
        answer = await send(client, "POST", PODS, pod)
    except Exception as error:  # noqa: BLE001 - whatever the client makes of a refusal
        if "cannot be handled as a Pod" in str(error):
            return None
        # It is an amount, but none that a pod may ask for.
        return "negative" if "greater than or equal" in str(error) else str(error)
    made: str = answer["spec"]["containers"][0]["resources"]["limits"]["memory"]
    return made


async def record() -> None:
    """Write the file that `make test` reads."""
    async with real_plane() as (_, client):
        answers = {text: await ask(client, text) for text in json.loads(RECORDED.read_text())}
    RECORDED.write_text(json.dumps(answers, indent=0, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    asyncio.run(record())
