"""Runs the annotator: `python -m services.annotator`."""

from moorage_host.process.lifecycle import run
from moorage_host.settings import parse_settings
from services.annotator.serving import annotate_once, serve
from services.annotator.settings import AnnotatorSettings


def main() -> None:
    """Annotate nodes until SIGTERM, or once."""
    settings = parse_settings(AnnotatorSettings, "python -m moorage_apps services.annotator")
    run(annotate_once(settings) if settings.once or settings.dry_run else serve(settings))


if __name__ == "__main__":
    main()
