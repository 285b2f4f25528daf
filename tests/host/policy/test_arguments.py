from enum import Enum
from typing import Annotated, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from moorage.errors import ConfigurationError
from moorage.plugin.arguments import Arguments
from moorage_host.policy import check_arguments
from moorage_host.policy.checks import schema_problems

PATH = "p.yaml:12: profiles[0].pluginConfig[2].args"


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Resource(Arguments, kw_only=True):
    name: str
    weight: Annotated[int, Meta(ge=1, le=100)] = 1


class Args(Arguments, kw_only=True):
    max_temperature: Annotated[float, Meta(gt=0)] = 80.0
    label: str | None = None
    mode: Literal["spread", "pack"] = "spread"
    colour: Colour = Colour.RED
    resources: tuple[Resource, ...] = ()
    limits: dict[str, int] = msgspec.field(default_factory=dict)
    zones: Annotated[list[str], Meta(max_length=2)] = msgspec.field(default_factory=list)
    nested: Resource | None = None
    either: int | str = 0


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            {"maxTemperatur": 1},
            ".maxTemperatur: unknown field `maxTemperatur`, did you mean `maxTemperature`?",
        ),
        (
            {"max_temperature": 1},
            ".max_temperature: unknown field `max_temperature`, did you mean `maxTemperature`?",
        ),
        ({"maxTemperature": 0}, ".maxTemperature: expected float > 0.0, got int 0"),
        ({"maxTemperature": "hot"}, '.maxTemperature: expected float, got str "hot"'),
        ({"maxTemperature": None}, ".maxTemperature: expected float, got null"),
        ({"label": 5}, ".label: expected str | null, got int 5"),
        (
            {"mode": "packed"},
            '.mode: expected "spread" or "pack", got str "packed", did you mean `pack`?',
        ),
        ({"colour": "green"}, '.colour: expected "red" or "blue", got str "green"'),
        ({"resources": {}}, ".resources: expected array, got object"),
        ({"resources": [{"weight": 1}]}, ".resources[0]: field `name` is missing"),
        (
            {"resources": [{"name": "cpu"}, {"name": "x", "weight": 101}]},
            ".resources[1].weight: expected int <= 100, got int 101",
        ),
        ({"limits": {"a.b/c": "x"}}, '.limits["a.b/c"]: expected int, got str "x"'),
        ({"zones": ["a", "b", "c"]}, ".zones: expected array of length <= 2, got array"),
        ({"zones": ["a", 1]}, ".zones[1]: expected str, got int 1"),
        (
            {"nested": {"nam": "x", "name": "y"}},
            ".nested.nam: unknown field `nam`, did you mean `name`?",
        ),
        ({"either": 1.5}, ".either: expected int | str, got float 1.5"),
        ({"label": ["x" * 100]}, ".label: expected str | null, got array"),
        (
            {"lable": "x", "zones": [1, 2]},
            (
                ".lable: unknown field `lable`, did you mean `label`?\n"
                ".zones[0]: expected str, got int 1\n.zones[1]: expected str, got int 2"
            ),
        ),
    ],
)
def test_a_mistake_is_told_with_its_path(args: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        check_arguments(args, Args, PATH)
    assert str(caught.value).replace(PATH, "") == message


class Picky(Arguments, kw_only=True):
    low: int = 0
    high: int = 1

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("low must not be above high")
        if self.low < 0:
            raise KeyError(self.low)


@pytest.mark.parametrize(
    ("args", "kind", "message"),
    [
        ({"low": 2}, Picky, "args: low must not be above high"),
        ({"low": -1}, Picky, "args: KeyError: -1"),
        ({"x": 1}, Arguments, "unknown field `x`; none is known here"),
    ],
)
def test_an_authors_own_check_is_told(
    args: dict[str, object], kind: type[Arguments], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        check_arguments(args, kind, PATH)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(-3, 3)
    | st.sampled_from(["red", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "weight", "x"]), inner, max_size=3)
    ),
    max_leaves=5,
)
FIELDS = st.sampled_from([*(f.encode_name for f in msgspec.structs.fields(Args)), "other"])


@given(st.dictionaries(FIELDS, VALUES, max_size=3))
def test_what_the_schema_refuses_the_plugin_refuses(args: dict[str, object]) -> None:
    """The gateway checks by schema, the replica by type: the gateway must not be the stricter."""
    if list(schema_problems(args, msgspec.json.schema(Args), "args")):
        with pytest.raises(ConfigurationError):
            check_arguments(args, Args, PATH)


@given(st.dictionaries(FIELDS, VALUES, max_size=3))
def test_problems_are_found_exactly_when_msgspec_finds_one(args: dict[str, object]) -> None:
    try:
        expected = msgspec.convert(args, Args)
    except msgspec.ValidationError:
        with pytest.raises(ConfigurationError):
            check_arguments(args, Args, PATH)
    else:
        assert check_arguments(args, Args, PATH) == expected


def test_the_schema_refuses_nothing_that_it_allows() -> None:
    """Of what is beyond us, such as `either`, the replica decides."""
    resource = {"name": "cpu", "weight": 100}
    args: dict[str, object] = {
        "maxTemperature": 80.5,
        "label": None,
        "mode": "pack",
        "limits": {"a": 1},
        "resources": [resource],
        "zones": ["a", "b"],
        "nested": resource,
        "either": [1],
    }
    assert list(schema_problems(args, msgspec.json.schema(Args), "args")) == []
