"""The `moorage` command, as pip installs it."""

from moorage_apps import make_importable


def main() -> None:
    """Run the command."""
    make_importable()
    from cli.main import main as run

    run()
