from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from moorage_host.settings import declared_settings, parse_settings, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    extender_port: int = setting(8888, "Where it listens.", minimum=1, maximum=65535)
    http_timeout: float = setting(
        5.0, "How long a call may take.", unit="seconds", minimum=0.001, maximum=3600
    )
    ratio: float = setting(0.5, "A plain number, not a duration; 100% of it.")
    cluster: str = setting("local", "A name.")
    insecure: bool = setting(False, "Goes without TLS.")
    annotate: bool = setting(True, "Writes an annotation.")
    plugin: tuple[Path, ...] = setting((), "A file to load; may be repeated.")
    origins: tuple[str, ...] = setting(("a", "b"), "Several words.")
    ca_file: Path | None = setting(None, "Certificates to trust.")
    log_format: Literal["json", "text"] = setting("json", "How log lines look.")


def parse(argv: Sequence[str] = (), environ: Mapping[str, str] | None = None) -> Settings:
    return parse_settings(Settings, "gateway", argv, environ or {})


GIVEN = Settings(
    extender_port=65535,
    http_timeout=90.0,
    ratio=-2.5,
    cluster="east",
    insecure=True,
    annotate=False,
    plugin=(Path("a.py"), Path("b")),
    origins=("x",),
    ca_file=Path("ca.pem"),
    log_format="text",
)


def test_options_set_every_type() -> None:
    argv = (
        "--extender-port 65535 --http-timeout 1m30s --ratio -2.5 --cluster east --insecure "
        "--no-annotate --plugin a.py --plugin b/ --origins x --ca-file ca.pem --log-format text"
    )
    assert parse(argv.split()) == GIVEN


def test_environment_variables_set_every_type(monkeypatch: pytest.MonkeyPatch) -> None:
    words = (
        "EXTENDER_PORT=65535 HTTP_TIMEOUT=90000ms RATIO=-2.5 CLUSTER=east INSECURE=True ANNOTATE=0 "
        "PLUGIN=a.py,b, ORIGINS=x CA_FILE=ca.pem LOG_FORMAT=text"
    )
    environ = dict(f"MOORAGE_{word}".split("=") for word in words.split())
    environ["MOORAGE_PLUGIN"] = "a.py, b,"
    assert parse(environ=environ) == GIVEN
    for name, text in environ.items():
        monkeypatch.setenv(name, text)
    assert parse_settings(Settings, "gateway", []) == GIVEN


def test_an_option_beats_the_environment() -> None:
    environ = {"MOORAGE_EXTENDER_PORT": "2", "MOORAGE_INSECURE": "1", "MOORAGE_PLUGIN": "a.py"}
    settings = parse(["--extender-port=1", "--no-insecure", "--plugin=b.py"], environ)
    assert (settings.extender_port, settings.insecure) == (1, False)
    assert settings.plugin == (Path("b.py"),)


def test_an_empty_variable_unsets_an_optional_setting_and_a_repeatable_one() -> None:
    settings = parse(environ={"MOORAGE_CA_FILE": "", "MOORAGE_ORIGINS": ""})
    assert settings.ca_file is None
    assert settings.origins == ()


def test_a_duration_may_be_a_plain_number_of_seconds() -> None:
    assert parse(["--http-timeout", "2.5"]).http_timeout == 2.5


SERVICE_LINK_HINT = "set enableServiceLinks: false on the pod"
PORT = "allowed: an integer, at least 1, at most 65535"
TIMEOUT = "allowed: a duration such as 500ms or 1m30s, at least 1ms, at most 1h"


@pytest.mark.parametrize(
    ("argv", "environ", "message"),
    [
        (["--extender-port", "0"], {}, f'--extender-port is "0", {PORT}'),
        (["--extender-port", "http"], {}, f'--extender-port is "http", {PORT}'),
        ([], {"MOORAGE_EXTENDER_PORT": "99999"}, f'MOORAGE_EXTENDER_PORT is "99999", {PORT}'),
        ([], {"MOORAGE_EXTENDER_PORT": ""}, f'MOORAGE_EXTENDER_PORT is "", {PORT}'),
        (
            [],
            {"MOORAGE_EXTENDER_PORT": "tcp://10.0.0.1:80"},
            f'MOORAGE_EXTENDER_PORT is "tcp://10.0.0.1:80", {PORT}; {SERVICE_LINK_HINT}',
        ),
        (["--http-timeout", "5 s"], {}, f'--http-timeout is "5 s", {TIMEOUT}'),
        (["--http-timeout", "2h"], {}, f'--http-timeout is "2h", {TIMEOUT}'),
        (["--http-timeout", "nan"], {}, f'--http-timeout is "nan", {TIMEOUT}'),
        (["--ratio", "nan"], {}, '--ratio is "nan", allowed: a number'),
        ([], {"MOORAGE_INSECURE": "maybe"}, 'MOORAGE_INSECURE is "maybe", allowed: true or false'),
        (["--log-format", "xml"], {}, '--log-format is "xml", allowed: json or text'),
        (
            ["--extender", "1"],
            {},
            "unrecognized arguments: --extender 1, did you mean `--extender-port`?",
        ),
        (["--cluster"], {}, "argument --cluster: expected one argument"),
    ],
)
def test_a_bad_setting_ends_the_process_with_one_line(
    argv: list[str],
    environ: dict[str, str],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(argv, environ)
    assert caught.value.code == 2
    output = capsys.readouterr()
    assert output.err == f"gateway: {message}; see gateway --help\n"
    assert output.out == ""


def test_help_shows_option_variable_default_and_meaning(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(["--help"])
    assert caught.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "--http-timeout SECONDS" in text
    assert "How long a call may take. [MOORAGE_HTTP_TIMEOUT; default: 5s]" in text
    assert "--annotate, --no-annotate" in text
    assert "100% of it. [MOORAGE_RATIO; default: 0.5]" in text


def test_what_is_declared_is_described_in_order() -> None:
    declared = list(declared_settings(Settings))
    assert [each.option for each in declared[:3]] == [
        "--extender-port",
        "--http-timeout",
        "--ratio",
    ]
    assert len(declared) == 10
    timeout = declared[1]
    assert timeout.variable == "MOORAGE_HTTP_TIMEOUT"
    assert (timeout.show(timeout.default), timeout.unit) == ("5s", "seconds")
    assert timeout.meaning == (
        "How long a call may take. "
        "Allowed: a duration such as 500ms or 1m30s, at least 1ms, at most 1h."
    )
    shown = [each.show(each.default) for each in declared[3:]]
    assert shown == ["local", "false", "true", "", "a,b", "", "json"]
    assert declared[9].meaning == "How log lines look. Allowed: json or text."
    assert declared[3].meaning == "A name."
