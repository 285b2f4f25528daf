"""What the comparison page says about costs is what the performance page measured."""

import pytest

from tools.docs.bench_tables import CLUSTERS, pods_per_second
from tools.docs.pages import DOCS

PAGE = (DOCS / "explanation" / "comparison.md").read_text()


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_sentences_about_any_extender_hold(cluster: str) -> None:
    pods = pods_per_second(cluster)
    none = pods.pop("no extender")
    assert "leaves less than 50 %" in PAGE
    assert pods["go nothing"] < 0.5 * none
    assert "takes more than twice as long" in PAGE
    assert max(pods.values()) < 0.5 * none
