"""What reflection clients are shown."""

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from moorage.v1 import filter_pb2
from moorage_host.rpc.standard import CompletePool

FILE = filter_pb2.DESCRIPTOR.name


@pytest.mark.parametrize(
    "symbol",
    [
        "moorage.v1.FilterService",
        "moorage.v1.FilterService.GetState",
        "moorage.v1.FilterServiceGetStateResponse",
        "moorage.v1.FilterServiceGetStateResponse.node_count",
    ],
)
def test_services_methods_messages_and_fields_are_found(symbol: str) -> None:
    assert CompletePool().FindFileContainingSymbol(symbol).name == FILE


def test_what_is_not_there_is_not_found() -> None:
    for symbol in ("moorage.v1.Nothing", "moorage.v1.FilterService.Nothing", ""):
        with pytest.raises(KeyError):
            CompletePool().FindFileContainingSymbol(symbol)


def test_fields_have_the_json_names_that_protobuf_gives_them() -> None:
    files = [CompletePool().FindFileByName(FILE)]
    names = 0
    while files:
        file = files.pop()
        proto = FileDescriptorProto()
        file.CopyToProto(proto)
        for message in proto.message_type:
            known = CompletePool().FindMessageTypeByName(f"{proto.package}.{message.name}")
            for field in message.field:
                assert field.json_name == known.fields_by_name[field.name].json_name
                names += "_" in field.name
        files += file.dependencies
    assert names > 10
