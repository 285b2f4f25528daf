"""A plugin of pytest: the checks of `moorage conformance` among the tests of any project.

pytest -p moorage_apps.conformance --pyargs cli.conformance.checks --extender-url URL
"""

import asyncio
import shlex

import click
import pytest

from moorage_apps import make_importable

make_importable()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("extender")
    group.addoption("--extender-url", metavar="URL", help="The extender that is checked.")
    group.addoption(
        "--extender-options",
        metavar="TEXT",
        default="",
        help="Options of `moorage conformance`, such as '--bind --score-scale 100'.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Add the fixtures of the checks."""
    if url := config.getoption("--extender-url"):
        from cli.conformance.command import conformance
        from cli.conformance.kit import kit_of
        from cli.conformance.probe import check_reachable
        from moorage.errors import ConfigurationError

        words = [url, *shlex.split(config.getoption("--extender-options"))]
        try:
            context = conformance.make_context("--extender-options", words)
            kit = kit_of(context.params)
            asyncio.run(check_reachable(kit.requests.config))
            config.pluginmanager.register(kit, "moorage-conformance")
        except (click.ClickException, ConfigurationError) as error:
            raise pytest.UsageError(str(error)) from error
