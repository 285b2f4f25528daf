"""Names and prose use plain technical English and the terms of Kubernetes scheduling.

A banned word is one that this project once used in a sense of its own. The message names the place
and a better word. A line that needs the word in its usual sense is in `ALLOWED`, with the reason.
"""

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tools.docs.pages import ROOT

BANNED = {
    r"\bof late\b": "recently",
    r"\blest\b": "so that ... not",
    r"\bamid\b": "during, among",
    r"\bbesides\b": "in addition to, other than",
    r"\banew\b": "again",
    r"\brecurs?\b": "seen before",
    r"\bmoments? of\b": "time of",
    r"\bmoments\b": "times",
    r"\bhabits?\b": "pattern, usual use",
    r"\bpatience\b": "delay, timeout",
    r"\bstrangers?\b": "unknown, third-party",
    r"\blosses\b": "lost sessions",
    r"\bpromises?\b": "guarantee, declare",
    r"\bsubjects?\b": "request, pod",
    r"\bhalves\b|\b(?:each|this|that|other|filter|score) half\b": "phase",
    r"\bremember(?:s|ed|ing)?\b": "cache, keep, record",
    r"\b(?:tells?|told)\b": "send, report, log, distinguish",
    r"\bsaid\b": "answered, reported, sent",
    r"\b(?:in|into) force\b": "active",
    r"\bsays something\b": "differs, sends",
}
"""Prose that is banned, in any case, and what to write instead."""

_ANY = re.compile(
    rf"\b(?:{'|'.join(pattern.removeprefix(chr(92) + 'b') for pattern in BANNED)})", re.IGNORECASE
)

BANNED_NAMES = {
    r"^(?:\w+_)?(?:half|halves)$|[a-z]Half$|^Half": "phase",
    r"^_?(?:tell|told|lose|hear)(?:_\w+)?$": "send_, report_, mark_lost, mark_alive",
    r"(?:^|_)(?:habits?|losses|moments|patience|promises?|strangers?|subjects?)(?:_|$)": (
        "see the banned prose"
    ),
    r"(?:^|_)remember(?:ed|s)?(?:_|$)|^Remember": "cached, kept",
    r"(?:Habit|Patience|Promise|Stranger|Subject)": "see the banned prose",
}
"""Names in Python code that are banned, and better ones."""

ALLOWED = {
    r"^\s*subjects:$|\"subjects\"|/subjects/": "a field of RBAC's bindings",
    r"subject_name|issuer\.subject|[sS]ubject ?(?:[aA]lternative|Public|Key)": "X.509's terms",
}
"""Lines that need a banned word, and why."""

SUFFIXES = {".py", ".md", ".proto", ".yaml", ".toml", ".cfg", ".ini", ""}
LEFT_OUT = (
    "LICENSE",
    "gateway/inspector/static/vendor/",
    "sdk/moorage/v1/",
    "tests/",
    "tools/",
)
"""Tests and tools speak as users do; generated code repeats the protos; the rest is of others."""


def _files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout.splitlines()
    names = (name for name in listed if not name.startswith(LEFT_OUT))
    return [
        ROOT / name
        for name in names
        if (ROOT / name).suffix in SUFFIXES and (ROOT / name).is_file()
    ]


def _in_prose(text: str) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if not _ANY.search(line) or _is_allowed(line):
            continue
        for pattern, better in BANNED.items():
            for match in re.finditer(pattern, line, re.IGNORECASE):
                yield number, match[0], better


def _in_names(text: str) -> Iterator[tuple[int, str, str]]:
    if not any(map(_may_be_banned, set(re.findall(r"\w+", text)))):
        return  # reading tokens takes long
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME and not _is_allowed(token.line):
            for pattern, better in BANNED_NAMES.items():
                if re.search(pattern, token.string):
                    yield token.start[0], token.string, better


@cache
def _may_be_banned(word: str) -> bool:
    return any(re.search(pattern, word) for pattern in BANNED_NAMES)


def _is_allowed(line: str) -> bool:
    return any(re.search(pattern, line) for pattern in ALLOWED)


def test_names_and_prose_are_plain() -> None:
    found = []
    for path in _files():
        text = path.read_text()
        banned = [*_in_prose(text), *(_in_names(text) if path.suffix == ".py" else ())]
        found += [
            f'{path.relative_to(ROOT)}:{number}: "{word}"; better: {better}'
            for number, word, better in banned
        ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("# what replicas have needed of late", "of late"),
        ("def filter_half() -> None: ...", "filter_half"),
        ("class ScoreHalf: ...", "ScoreHalf"),
        ("self.tell(node)", "tell"),
        ("known_strangers = 1", "known_strangers"),
        ('"""Remembers names."""', "Remembers"),
    ],
)
def test_a_banned_word_is_found(text: str, word: str) -> None:
    assert word in [found for _, found, _ in (*_in_prose(text), *_in_names(text))]


@pytest.mark.parametrize("text", ["# after half an hour", "half_life = 1", "behalf = retell = 0"])
def test_usual_words_are_allowed(text: str) -> None:
    assert not [*_in_prose(text), *_in_names(text.strip())]


def test_no_public_class_name_means_two_things() -> None:
    """But for plugins that kube-scheduler, too, has as filter and as score."""
    found: dict[str, list[str]] = {}
    for package in ("gateway", "services", "sdk", "cli", "sandbox"):
        for file in sorted((ROOT / package).rglob("*.py")):
            place = file.relative_to(ROOT)
            if {"plugins", "in_tree"} & set(
                place.parts[1:-1]
            ) and "moorage_host" not in place.parts:
                continue
            for each in ast.parse(file.read_text()).body:
                if isinstance(each, ast.ClassDef) and not each.name.startswith("_"):
                    found.setdefault(each.name, []).append(f"{place}:{each.lineno}")
    twice = {name: places for name, places in found.items() if len(places) > 1}
    assert not twice
