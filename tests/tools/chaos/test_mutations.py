"""Each mutation still finds what it takes out; that the campaign notices is shown by hand."""

import pytest

from tools.chaos.mutations import MUTATIONS
from tools.mutations import Edit
from tools.planes.embedded import ROOT


@pytest.mark.parametrize(
    "edit", [edit for each in MUTATIONS for edit in each.edits], ids=lambda edit: str(edit.file)
)
def test_an_edit_finds_its_text_once(edit: Edit) -> None:
    assert (ROOT / edit.file).read_text().count(edit.old) == 1
