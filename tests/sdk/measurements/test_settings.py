from typing import Any

import pytest

from moorage import ConfigurationError
from moorage.measurements import PrometheusSettings
from moorage_host.policy.checks import check_arguments


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"address": "localhost:9090"}, "args.address: expected an address without credentials"),
        ({"address": "http://me:secret@host"}, "args.address: expected an address without"),
        ({"interval": "30"}, 'args.interval: expected a duration such as "500ms"'),
        ({"interval": "0s"}, 'a duration must be longer than "0s"'),
        ({"maxAge": "10s"}, "maxAge must not be shorter than interval"),
        ({"username": "me"}, "username and passwordFile need each other"),
        ({"passwordFile": "f"}, "username and passwordFile need each other"),
        (
            {"username": "me", "passwordFile": "f", "bearerTokenFile": "t"},
            "username and bearerTokenFile exclude each other",
        ),
        ({"preset": "nodes"}, "did you mean `node`"),
        ({"nodeLabel": "no-label"}, "args.nodeLabel: expected the name of a Prometheus label"),
        ({"nodeLabel": "host", "nodeFormat": "x"}, "must contain {name}"),
        ({"adress": "http://host"}, "did you mean"),
    ],
)
def test_a_mistake_is_refused_with_its_place(args: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        check_arguments(args, PrometheusSettings, "args")
    assert problem in str(error.value)


def test_a_label_and_a_format_replace_the_preset() -> None:
    args = {"nodeLabel": "host", "nodeFormat": "{name}.example.com", "preset": "instance-ip"}
    layout = check_arguments(args, PrometheusSettings, "args").layout
    assert (layout.label, layout.format, layout.join) == ("host", "{name}.example.com", "")
