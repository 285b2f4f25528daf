"""The hooks of a kind: what happens to its objects beyond storing them; and the syntax of names.

The metadata of every object is checked here.
"""

import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from sandbox.apiserver.errors import Cause, invalid_value, required
from sandbox.apiserver.resources.table import Object
from sandbox.apiserver.store.store import Store

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
# As Kubernetes: no vowels and no look-alikes, so that no words arise.
SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
_LONGEST_GENERATED = 63


@dataclass(frozen=True, slots=True)
class Syntax:
    """A form that a text must have, and how Kubernetes words it."""

    pattern: str
    longest: int
    explanation: str

    def problem(self, text: str) -> str:
        """Return what is wrong with the text, or nothing."""
        if len(text) > self.longest:
            return f"must be no more than {self.longest} characters"
        if re.fullmatch(self.pattern, text):
            return ""
        return f"{self.explanation}, regex used for validation is '{self.pattern}')"


DNS_LABEL = Syntax(
    _LABEL,
    63,
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc'",
)
DNS_SUBDOMAIN = Syntax(
    _SUBDOMAIN,
    253,
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com'",
)
PATH_SEGMENT = Syntax(
    r"(?!\.{1,2}$)[^/%]+",
    253,
    "may not be '.' or '..', nor contain '/' or '%' (of roles and bindings, e.g. 'system:node'",
)
LABEL_NAME = Syntax(
    _NAME,
    63,
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc'",
)
LABEL_VALUE = Syntax(
    f"({_NAME})?",
    63,
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "
    "'my_value',  or '12345'",
)


def generate(prefix: str) -> str:
    """Make a name from a generateName: the prefix, cut if too long, and five random letters."""
    suffix = "".join(secrets.choice(SUFFIX_LETTERS) for _ in range(_SUFFIX_LENGTH))
    return prefix[: _LONGEST_GENERATED - _SUFFIX_LENGTH] + suffix


def check_metadata(metadata: Object, name_syntax: Syntax) -> Iterator[Cause]:
    """Yield what is wrong with the name, the labels, the annotations and the finalizers."""
    name = metadata.get("name", "")
    if not name:
        yield required("metadata.name", "name or generateName is required")
    elif problem := name_syntax.problem(name):
        yield invalid_value("metadata.name", name, problem)
    for key, value in metadata.get("labels", {}).items():
        yield from _key("metadata.labels", key)
        if problem := LABEL_VALUE.problem(value):
            yield invalid_value("metadata.labels", value, problem)
    for key in metadata.get("annotations", {}):
        yield from _key("metadata.annotations", key.lower())
    for finalizer in metadata.get("finalizers", ()):
        yield from _key("metadata.finalizers", finalizer)


def _key(path: str, key: str) -> Iterator[Cause]:
    prefix, slash, name = key.rpartition("/")
    if slash and (problem := DNS_SUBDOMAIN.problem(prefix)):
        yield invalid_value(path, key, f"prefix part {problem}")
    if problem := LABEL_NAME.problem(name):
        yield invalid_value(path, key, problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteHooks:
    """Hooks in the order in which a write runs them; the first four may change the object."""

    default: Callable[[Object], None] = lambda _: None
    """Fill in missing fields, at every write."""
    on_create: Callable[[Object], None] = lambda _: None
    """Set what only the server decides, when the object is created."""
    on_update: Callable[[Object, Object], None] = lambda new, old: None
    """Take over what an update of the new object (first) leaves out of the old one."""
    admit: Callable[[Store, Object], None] = lambda store, obj: None
    """Refuse or complete a new object in view of others; raises StatusError."""
    validate: Callable[[Object], Iterable[Cause]] = lambda _: ()
    """Yield the fields that are wrong, at every write."""
    validate_update: Callable[[Object, Object], Iterable[Cause]] = lambda new, old: ()
    """Yield the fields of the new object (first) that may not differ from the old one."""
    most: int | None = None
    """How many objects a namespace keeps: with a further one the oldest goes."""
    name_syntax: Syntax = DNS_SUBDOMAIN
    keeps_status: bool = False
    """A new object keeps the status that the client sent."""
