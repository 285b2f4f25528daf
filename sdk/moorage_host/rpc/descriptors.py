"""What reflection shows of the protos; for `add_reflection`.

Python's descriptor pool answers reflection clients worse than others do: it does not find methods
by name, so that `grpcurl describe SERVICE.METHOD` fails, and it leaves out the JSON names of
fields, so that grpcurl prints node_count instead of nodeCount.
"""

from collections.abc import Sequence
from typing import Any

from google.protobuf import descriptor_pool
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto


class CompletePool:
    """The default descriptor pool, with methods and JSON names; as far as reflection uses it."""

    def __init__(self) -> None:
        self._pool = descriptor_pool.Default()

    def FindFileByName(self, name: str) -> "CompleteFile":  # noqa: N802 - protobuf's name
        """Return a file; raises KeyError if there is none."""
        return CompleteFile(self._pool.FindFileByName(name))

    def FindFileContainingSymbol(self, symbol: str) -> "CompleteFile":  # noqa: N802
        """Return the file that defines a symbol, such as a method; raises KeyError without one."""
        try:
            return CompleteFile(self._pool.FindFileContainingSymbol(symbol))
        except KeyError:
            return CompleteFile(self._pool.FindMethodByName(symbol).containing_service.file)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)


class CompleteFile:
    """A file whose fields have their JSON names."""

    def __init__(self, file: FileDescriptor) -> None:
        self._file = file

    @property
    def name(self) -> str:
        """The path of the file."""
        return str(self._file.name)

    @property
    def dependencies(self) -> "Sequence[CompleteFile]":
        """The files that it imports."""
        return [CompleteFile(file) for file in self._file.dependencies]

    def CopyToProto(self, proto: FileDescriptorProto) -> None:  # noqa: N802
        """Write it into *proto*."""
        self._file.CopyToProto(proto)
        for message in proto.message_type:
            _name_fields(message)


def _name_fields(message: DescriptorProto) -> None:
    for field in message.field:
        if not field.json_name:
            first, *rest = field.name.split("_")
            field.json_name = first + "".join(part[:1].upper() + part[1:] for part in rest)
    for nested in message.nested_type:
        _name_fields(nested)
