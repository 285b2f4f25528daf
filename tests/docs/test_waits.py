"""Each wait in a test ends before the test's own limit, so that its message says what it was for.

`tools.waiting.until` is the way to wait. The limit of a test (tests.limits) is for what is awaited
in a coroutine: it fails there.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
RUNS = {f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output")}
BLOCKING = re.compile(r"(?!self\.join)\S+\.(?:communicate|join|wait)\(\)")
MAYBE = re.compile(r"subprocess\.|\.(?:communicate|join|wait)\(\)|\bwhile .*\n(?:.*\n)*?.*sleep\(")
CLOCK = re.compile(r"\.(?:monotonic|time)\(\)")


def unbounded(text: str) -> Iterator[str]:
    """Yield a line for each wait without an end."""
    if not MAYBE.search(text):
        return  # reading code takes long
    tree = ast.parse(text)
    bounded = {
        id(inner)
        for block in ast.walk(tree)
        if isinstance(block, ast.With | ast.AsyncWith)
        and any("timeout" in ast.unparse(item.context_expr) for item in block.items)
        for inner in ast.walk(block)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if ast.unparse(node.func) in RUNS and all(
                keyword.arg != "timeout" for keyword in node.keywords
            ):
                yield f"{node.lineno}: {ast.unparse(node.func)} without timeout="
        elif isinstance(node, ast.Expr) and BLOCKING.fullmatch(text := ast.unparse(node)):
            yield f"{node.lineno}: {text} without a limit"
        elif isinstance(node, ast.While) and id(node) not in bounded:
            condition, text = ast.unparse(node.test), ast.unparse(node)
            # One without a condition is work, which somebody cancels.
            if condition != "True" and "sleep(" in text and not CLOCK.search(text):
                yield f"{node.lineno}: while {condition}: use `until`"


def test_no_wait_is_without_an_end() -> None:
    found = [
        f"{path.relative_to(TESTS.parent)}:{line}"
        for path in sorted(TESTS.rglob("*.py"))
        for line in unbounded(path.read_text())
    ]
    assert found == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("subprocess.run(command, check=True)", 1),
        ("subprocess.run(command, timeout=60)", 0),
        ("thread.join()", 1),
        ("thread.join(20)", 0),
        ("await process.wait()", 0),
        ("while not seen:\n    await asyncio.sleep(1)", 1),
        ("async with asyncio.timeout(9):\n  while not seen:\n    await asyncio.sleep(1)", 0),
        ("while True:\n    await asyncio.sleep(1)", 0),
    ],
)
def test_what_is_a_wait_without_an_end(text: str, found: int) -> None:
    assert len([*unbounded(text)]) == found
