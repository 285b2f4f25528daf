"""Writes sandbox/apiserver/kubernetes.json: the published schemas of the kinds that it serves.

python -m tools.kubernetes_schemas SWAGGER_JSON

The argument is api/openapi-spec/swagger.json of the release of Kubernetes that the sandbox follows,
which `go mod download -json k8s.io/kubernetes@VERSION` brings.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sandbox.apiserver.requests.patches import SCALE
from sandbox.apiserver.resources.table import BUILT_IN
from sandbox.apiserver.schemas import FILE


def main() -> None:
    """Write the definitions of all kinds and of the types in them, one on each line."""
    published = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["definitions"]
    served = {(row.group, row.version, row.kind) for row in (*BUILT_IN, SCALE)}
    wanted = [
        name
        for name, schema in published.items()
        for each in schema.get("x-kubernetes-group-version-kind", ())
        if (each["group"], each["version"], each["kind"]) in served
    ]
    kept: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name not in kept:
            kept.add(name)
            wanted += _references(published[name])
    lines = (f"{json.dumps(name)}: {json.dumps(_plain(published[name]))}" for name in sorted(kept))
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _plain(value: Any) -> Any:
    """Return a schema without the texts that nobody reads."""
    if isinstance(value, dict):
        texts = (k for k, v in value.items() if k == "description" and isinstance(v, str))
        return {key: _plain(value[key]) for key in sorted(value.keys() - {*texts})}
    return list(map(_plain, value)) if isinstance(value, list) else value


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"].rpartition("/")[2]
        value = list(value.values())
    for each in value if isinstance(value, list) else ():
        yield from _references(each)


if __name__ == "__main__":
    main()
