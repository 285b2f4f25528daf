"""The methods, messages and fields of the protos; what a field means stands in the proto."""

import re
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    ServiceDescriptorProto,
)
from grpc_tools import protoc

from tools.docs.pages import ROOT, code, escaped

PROTOS = ROOT / "protos"
PACKAGE = ".moorage.v1."
_SCALARS = {value: name[5:].lower() for name, value in FieldDescriptorProto.Type.items()}
_MESSAGES, _ENUMS, _SERVICES, _NESTED, _METHODS = 4, 5, 6, 3, 2
"""Numbers of fields in descriptors, which the places of comments are made of."""

Place = tuple[int, ...]


def protos(file: str) -> str:
    """Return everything in a file, such as "filter", as Markdown below a heading of level 2."""
    described = next(f for f in descriptors().file if f.name == f"moorage/v1/{file}.proto")
    return "\n\n".join(_file(described))


@cache
def descriptors() -> FileDescriptorSet:
    """Return the descriptors of all protos, with comments."""
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder, "descriptors")
        files = [str(file) for file in sorted(PROTOS.rglob("*.proto"))]
        include = Path(protoc.__file__).parent / "_proto"
        options = [f"-I{PROTOS}", f"-I{include}", "--include_source_info"]
        code = protoc.main(["protoc", *options, f"--descriptor_set_out={written}", *files])  # type: ignore[no-untyped-call]
        assert code == 0, "protoc failed"
        return FileDescriptorSet.FromString(written.read_bytes())


def _file(file: FileDescriptorProto) -> Iterator[str]:
    comments = {tuple(each.path): each.leading_comments for each in file.source_code_info.location}
    for number, service in enumerate(file.service):
        yield from _service(service, (_SERVICES, number), comments)
    for number, message in enumerate(file.message_type):
        yield from _message(message, "", (_MESSAGES, number), comments)
    for number, enum in enumerate(file.enum_type):
        yield from _enum(enum, "", (_ENUMS, number), comments)


def _service(
    service: ServiceDescriptorProto, place: Place, comments: Mapping[Place, str]
) -> Iterator[str]:
    yield f"### {service.name}"
    yield _first(comments[place])
    for number, method in enumerate(service.method):
        request = ("stream of " if method.client_streaming else "") + _link(method.input_type)
        response = ("stream of " if method.server_streaming else "") + _link(method.output_type)
        yield f"#### {service.name}/{method.name}"
        yield f"{request} → {response}"
        yield _first(comments[(*place, _METHODS, number)])


def _message(
    message: DescriptorProto, outer: str, place: Place, comments: Mapping[Place, str]
) -> Iterator[str]:
    name = outer + message.name
    yield f"### {name}"
    yield _first(comments[place])
    if message.field:
        maps = {f"{PACKAGE}{name}.{m.name}": m for m in message.nested_type if m.options.map_entry}
        yield "Fields: " + "; ".join(
            f"{code(f'{field.name}={field.number}')} {_type(field, maps)}"
            f"{_alternative(field, message)}"
            for field in message.field
        )
    for number, nested in enumerate(message.nested_type):
        if not nested.options.map_entry:
            yield from _message(nested, f"{name}.", (*place, _NESTED, number), comments)
    for number, enum in enumerate(message.enum_type):
        yield from _enum(enum, f"{name}.", (*place, 4, number), comments)


def _enum(
    enum: EnumDescriptorProto, outer: str, place: Place, comments: Mapping[Place, str]
) -> Iterator[str]:
    yield f"### {outer}{enum.name}"
    yield _first(comments[place])
    yield "Values: " + ", ".join(code(f"{value.name}={value.number}") for value in enum.value)


def _type(field: FieldDescriptorProto, maps: Mapping[str, DescriptorProto]) -> str:
    if entry := maps.get(field.type_name):
        key, value = (_type(part, {}) for part in entry.field)
        return f"map of {key} to {value}"
    found = _link(field.type_name) if field.type_name else code(_SCALARS[field.type])
    return f"list of {found}" if field.label == FieldDescriptorProto.LABEL_REPEATED else found


def _alternative(field: FieldDescriptorProto, message: DescriptorProto) -> str:
    if field.proto3_optional:
        return ", optional"
    if not field.HasField("oneof_index"):
        return ""
    return f", one of {code(message.oneof_decl[field.oneof_index].name)}"


def _link(full: str) -> str:
    name = full.removeprefix(PACKAGE)
    if name == full:
        return code(full.lstrip("."))
    anchor = re.sub(r"[^\w-]", "", name.lower())
    return f"[`{name}`](#{anchor})"


def _first(comment: str) -> str:
    """Return the first sentence: the proto has the rest."""
    text = " ".join(escaped(comment).split())
    text = re.sub(r"^(?:Optional|Required)\. ", "", text)
    return re.split(r"(?<=[.:;]) (?=[A-Z`])", text)[0].rstrip(":;")
