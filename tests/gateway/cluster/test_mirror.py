"""What the mirror of a watched collection keeps of each object."""

import gc
import json

import msgspec

from gateway.cluster.watch.mirror import Collection, Mirror


class _Nobody:
    def replace(self, objects: object) -> None: ...

    def upsert(self, obj: object) -> None: ...

    def delete(self, key: str) -> None: ...


def test_the_garbage_collector_has_nothing_to_look_at_for_each_object() -> None:
    mirror = Mirror(_Nobody(), decode=bytes, key="uid")
    full = Collection(mirror)
    for number in range(100):
        metadata = {"name": f"p{number}", "uid": f"u{number}", "resourceVersion": str(number)}
        full.add(msgspec.Raw(json.dumps({"metadata": metadata}).encode()))
    mirror.swap(full)
    assert len(mirror.versions) == 100
    assert not any(map(gc.is_tracked, mirror.versions.values()))
