"""The gRPC services that every server has in addition to its own: health and reflection."""

from collections.abc import Sequence
from typing import Any

import grpc
from google.protobuf import descriptor_pool
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from moorage_host.rpc.errors import CallError


class _HealthServicer(health.aio.HealthServicer):  # type: ignore[misc, name-defined]
    """The library's, which has no `List`: Check and Watch name the service they are about."""

    async def List(self, request: Any, context: Any) -> Any:  # noqa: N802 - a method of the proto
        """Refuse politely."""
        del request, context
        raise CallError(grpc.StatusCode.UNIMPLEMENTED, "List is not implemented; call Check")


class Health:
    """`grpc.health.v1` for the services of a process, under their full names and the empty one.

    Load balancers of other processes watch a full name; probes by hand ask for the empty one.
    """

    def __init__(self, grpc_names: Sequence[str], server: grpc.aio.Server) -> None:
        self._servicer: Any = _HealthServicer()
        self._grpc_names = grpc_names
        health_pb2_grpc.add_HealthServicer_to_server(self._servicer, server)  # type: ignore[no-untyped-call]

    async def serving(self) -> None:
        """Report SERVING."""
        for name in self._grpc_names:
            await self._servicer.set(name, health_pb2.HealthCheckResponse.SERVING)

    async def shut_down(self) -> None:
        """Report NOT_SERVING from here on."""
        await self._servicer.enter_graceful_shutdown()


class CompletePool:
    """What reflection shows of the protos: the default descriptor pool, as far as it uses that.

    Python's pool answers reflection clients worse than others do: it does not find methods by name,
    so that `grpcurl describe SERVICE.METHOD` fails, and it leaves out the JSON names of fields, so
    that grpcurl prints node_count instead of nodeCount.
    """

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


def add_reflection(grpc_names: Sequence[str], server: grpc.aio.Server) -> None:
    """Let clients ask which methods and messages there are."""
    names = (*grpc_names, health.SERVICE_NAME, reflection.SERVICE_NAME)
    reflection.enable_server_reflection(names, server, CompletePool())  # type: ignore[no-untyped-call]
