"""For tests that convert many a Policy."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.config.policies import available_plugins
from cli.legacy.convert import convert
from tests.cli.legacy.support import HEADER, Converted, Translate


@pytest.fixture
def translate(tmp_path: Path) -> Translate:
    def run(**fields: Any) -> Converted:
        file = tmp_path / "legacy.json"
        file.write_text(json.dumps(HEADER | fields))
        conversion = convert(file, available_plugins(), "default-scheduler", "http://gateway:1")
        return Converted(conversion, tmp_path)

    return run
