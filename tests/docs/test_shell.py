"""Every command that a page shows is run or checked by a test: here, or by one that is named."""

import itertools
import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from google.protobuf import descriptor_pool, json_format, message_factory

from moorage.v1 import binder_pb2, filter_pb2, scorer_pb2
from tools.docs.pages import DOCS, ROOT, Block, blocks

CHECKED = {
    "moorage": "test_commands parses it",
    "python": "test_commands parses it",
    "kubectl": "objects and files below",
    "curl": "paths below",
    "grpcurl": "methods and messages below",
    "make": "targets below",
    "helm": "chart, values and files below",
}
"""Programs by what checks how they are called."""

OTHERS = {
    *(
        "apt-get",
        "aws",
        "cd",
        "cp",
        "diff",
        "do",
        "docker",
        "done",
        "echo",
        "export",
        "for",
        "git",
        "grep",
        "jq",
    ),
    *(
        "kube-scheduler",
        "kubeadm",
        "mkdir",
        "openssl",
        "pip",
        "pytest",
        "python3",
        "rm",
        "sed",
        "sort",
    ),
    *("ssh", "tee", "tr", "unset", "wc", "."),
}
"""Programs of which only the syntax of the line is checked."""

CHART = ROOT / "deploy" / "chart" / "moorage"
ROUTES = re.compile(r"`(?:GET |POST )?(/[a-z]+)")
PROTOS = (binder_pb2, filter_pb2, scorer_pb2)
"""Imported, so that the pool of descriptors has their messages."""


def commands(program: str = "") -> Iterator[tuple[Block, list[str]]]:
    """Yield the commands of shell blocks as words, each part of a pipeline for itself."""
    for block in blocks("sh"):
        for line in _lines(block.text):
            for words in _parts(line):
                if program in ("", words[0]):
                    yield block, words


def _parts(line: str) -> Iterator[list[str]]:
    """Yield the commands of a line without variables before them, `sudo` and folders."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;()")
    lexer.whitespace_split = True
    for is_operator, group in itertools.groupby(lexer, lambda word: not word.strip("|&;()")):
        words = [*itertools.dropwhile(lambda word: re.match(r"[A-Z_]+=|sudo$", word), group)]
        if words and not is_operator:
            yield [words[0].rpartition("/")[2] or words[0], *words[1:]]


def _lines(text: str) -> Iterator[str]:
    """Yield logical lines: those within quotes or after a backslash belong together."""
    pending = ""
    for line in text.replace("\\\n", " ").splitlines():
        pending += line
        if _complete(pending):
            yield pending
            pending = ""
        else:
            pending += "\n"
    assert not pending.strip(), f"an open quote: {pending}"


def _complete(text: str) -> bool:
    try:
        shlex.split(text, comments=True)
    except ValueError:
        return False
    return True


def test_blocks_are_shell(tmp_path: Path) -> None:
    for number, block in enumerate(blocks("sh")):
        (tmp_path / f"{number:03}").write_text(f"# {block}\n{block.text}")
    script = 'for file; do bash -n "$file" || head -1 "$file"; done'
    done = subprocess.run(
        ["bash", "-c", script, "bash", *sorted(tmp_path.iterdir())],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout + done.stderr == ""


def test_every_program_is_checked_or_known() -> None:
    named = {words[0]: str(block) for block, words in commands()}
    assert {n: where for n, where in named.items() if n not in CHECKED.keys() | OTHERS} == {}


def test_make_has_the_targets() -> None:
    makefile = (ROOT / "Makefile").read_text().replace("$(VENV)", ".venv")
    targets = set(re.findall(r"^([.a-z0-9/-]+):", makefile, re.M))
    for block, words in commands("make"):
        named = [w for w in words[1:] if "=" not in w and not w.startswith("-")]
        named = [w for w in named if words[words.index(w) - 1] != "-C"]
        assert set(named) <= targets, f"{block}: {' '.join(words)}"


def test_the_gateway_has_the_paths() -> None:
    known = set(ROUTES.findall((DOCS / "reference" / "http-ports.md").read_text()))
    known |= set(ROUTES.findall((DOCS / "reference" / "services" / "gateway.md").read_text()))
    known |= {"/sandbox"}  # of the embedded API server
    named = set()
    for block, words in commands("curl"):
        for word in words:
            if found := re.match(
                r"(?:https?://)?(?:localhost|127\.0\.0\.1|ADMIN)(?::\d+)?(/\w+)", word
            ):
                named.add(found[1])
                assert found[1] in known, f"{block}: {word}"
    assert named


def test_grpcurl_sends_messages_that_the_methods_have() -> None:
    pool = descriptor_pool.Default()
    found = 0
    for block, words in commands("grpcurl"):
        service, _, method = words[-1].partition("/")
        described = pool.FindServiceByName(service).methods_by_name[method]
        if "-d" in words:
            message = message_factory.GetMessageClass(described.input_type)()
            sent = json.loads(words[words.index("-d") + 1])
            manifest = sent.get("pod", {}).get("manifest")
            if manifest is not None:  # bytes in the message; grpcurl sends what it is given
                del sent["pod"]["manifest"]
            json_format.ParseDict(sent, message)
            found += 1
        assert len(words) > 2, block
    assert found


def deployed() -> dict[str, set[str]]:
    """Return the names of what deploy/install has by kind, in lower case."""
    names: dict[str, set[str]] = {}
    for file in (ROOT / "deploy" / "install").glob("*.yaml"):
        for each in _documents(file):
            names.setdefault(each["kind"].lower(), set()).add(each["metadata"]["name"])
    names["secret"] = {f"{name}-tls" for name in (*names["serviceaccount"], "operator")}
    names["deployment"].add("annotator")  # an option of the chart
    names["lease"] = {"moorage-gateway", "moorage-scheduler", "kube-scheduler"}
    return names


def test_kubectl_names_objects_that_are_installed() -> None:
    known = deployed()
    for block, words in commands("kubectl"):
        if "moorage" not in words[1:3]:  # -n moorage
            continue
        for position, word in enumerate(words):
            kind, slash, name = word.partition("/")
            if not slash and word in ("secret", "lease", "configmap", "service"):
                kind, name = word, words[position + 1]
            if kind in known and name and not name.startswith("-") and name != "POD":
                assert name in known[kind], f"{block}: deploy/install has no {kind} {name}"


def test_files_that_kubectl_and_helm_read_exist() -> None:
    for block, words in [*commands("kubectl"), *commands("helm")]:
        for before, word in itertools.pairwise(words):
            if before in ("-f", "-k", "--values") and word.startswith("deploy/"):
                assert (ROOT / word).exists(), f"{block}: {word}"


def test_helm_sets_values_that_the_chart_has() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    for block, words in commands("helm"):
        for before, word in itertools.pairwise(words):
            if before in ("--set", "--set-string", "--set-file"):
                for assignment in word.split(","):
                    assert _has(values, assignment.partition("=")[0]), f"{block}: {assignment}"


def _has(values: Any, path: str) -> bool:
    first, _, rest = re.sub(r"\\\.", "\0", path).partition(".")
    if not isinstance(values, dict) or not values:
        return True
    return first in values and (not rest or _has(values[first], rest))


def _documents(file: Path) -> Iterator[Any]:
    for each in yaml.safe_load_all(file.read_text()):
        if isinstance(each, dict) and "kind" in each:
            yield each
