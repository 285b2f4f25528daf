"""TopoLVM's rule as an extender in FastAPI, as people write one; run by uvicorn with its defaults.

python -m bench.processes.fastapi_extender PORT API

Whole nodes are taken from the call. For names the nodes are read once from the API server at API,
when the process starts.
"""

import json
import math
import sys
from typing import Any
from urllib.request import urlopen

import uvicorn
from fastapi import FastAPI

PREFIX = "capacity.topolvm.io/"
GIB = 1 << 30

app = FastAPI()
known: dict[str, dict[str, Any]] = {}


def requested(pod: dict[str, Any]) -> dict[str, int]:
    """Return the bytes that a pod requests, by the annotation that nodes have for it."""
    annotations = pod["metadata"].get("annotations", {})
    return {key: int(value) for key, value in annotations.items() if key.startswith(PREFIX)}


def refusal(node: dict[str, Any], wanted: dict[str, int]) -> str:
    """Return why a node has no room; "" if it has."""
    annotations = node["metadata"].get("annotations", {})
    for key, size in wanted.items():
        if key not in annotations:
            return "no capacity annotation"
        if int(annotations[key]) < size:
            return "out of VG free space"
    return ""


def points(node: dict[str, Any], wanted: dict[str, int]) -> int:
    """Return 1 to 10 by the logarithm of the free GiB; 0 without any."""
    annotations = node["metadata"].get("annotations", {})
    free = min((int(annotations.get(key, 0)) // GIB for key in wanted), default=0)
    return min(max(int(math.log2(free)), 1), 10) if free else 0


def nodes_of(args: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the nodes of a call, whichever way it names them."""
    if args.get("NodeNames") is not None:
        return [known[name] for name in args["NodeNames"]]
    return list(args["Nodes"]["items"])


@app.post("/filter")
def filter_nodes(args: dict[str, Any]) -> dict[str, Any]:
    """Rule nodes out."""
    wanted = requested(args["Pod"])
    kept, failed = [], {}
    for node in nodes_of(args):
        reason = refusal(node, wanted)
        if reason:
            failed[node["metadata"]["name"]] = reason
        else:
            kept.append(node)
    if args.get("NodeNames") is not None:
        return {"NodeNames": [n["metadata"]["name"] for n in kept], "FailedNodes": failed}
    return {"Nodes": {"items": kept}, "FailedNodes": failed}


@app.post("/prioritize")
def prioritize(args: dict[str, Any]) -> list[dict[str, Any]]:
    """Rank nodes."""
    wanted = requested(args["Pod"])
    return [
        {"Host": node["metadata"]["name"], "Score": points(node, wanted)} for node in nodes_of(args)
    ]


def main() -> None:
    """Read the nodes, and serve."""
    port, api = sys.argv[1:]
    with urlopen(f"{api}/api/v1/nodes") as response:
        known.update({node["metadata"]["name"]: node for node in json.load(response)["items"]})
    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning")


if __name__ == "__main__":
    main()
