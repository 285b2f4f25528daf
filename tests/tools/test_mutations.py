"""Each mutation still finds what it takes out; that it is noticed is shown by hand."""

import pytest

from tools.mutations import MUTATIONS, Edit
from tools.planes.embedded import ROOT

EDITS = [edit for each in MUTATIONS.values() for mutation in each for edit in mutation.edits]


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: str(edit.file))
def test_an_edit_finds_its_text_once(edit: Edit) -> None:
    assert (ROOT / edit.file).read_text().count(edit.old) == 1
