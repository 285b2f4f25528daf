"""Keeps pytest out of packages that are data here: they are tested where they are installed."""

collect_ignore_glob = ["acme-*"]
