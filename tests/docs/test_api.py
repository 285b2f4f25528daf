"""Every name of the public library has a docstring and is on a page of the reference."""

import re

import pytest

from tools.docs.api_tables import MODULES, public_names
from tools.docs.pages import DOCS


def test_every_public_module_has_a_page() -> None:
    folder = DOCS / "reference" / "api"
    pages = [file.read_text() for file in folder.glob("*.md")]
    shown = [name for page in pages for name in re.findall(r"<!-- table: api (\S+) -->", page)]
    assert sorted(shown) == sorted(MODULES)


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_a_docstring(module: str) -> None:
    assert public_names(module)
    assert [each.name for each in public_names(module) if not each.text.strip()] == []
