"""Objects of additional kinds, as plugins see them."""

import msgspec
import pytest

from moorage import ObjectKind, Objects
from moorage.errors import UnknownNameError
from moorage.models import ObjectName
from moorage.snapshot import ObjectStore

RACKS = ObjectKind("example.com/v1", "racks")
ROOMS = ObjectKind("example.com/v1", "rooms")


class Spec(msgspec.Struct, rename="camel"):
    power_watts: int = 0
    note: str = ""


class Rack(msgspec.Struct):
    spec: Spec


def name(text: str, namespace: str = "") -> ObjectName:
    return ObjectName(RACKS, namespace, text)


def rack(watts: object, **more: object) -> bytes:
    return msgspec.json.encode({"spec": {"powerWatts": watts, **more}})


@pytest.fixture
def store() -> ObjectStore:
    store = ObjectStore([RACKS, ROOMS])
    store.put(name("r1"), rack(100))
    store.put(name("r2", "hall"), rack(200))
    return store


def total(racks: Objects[Rack]) -> int:
    return sum(each.spec.power_watts for each in racks)


def test_objects_are_found_by_name_and_namespace(store: ObjectStore) -> None:
    racks = store.select(RACKS, dict)
    assert racks.get("r1") == {"spec": {"powerWatts": 100}}
    assert racks.get("r2", "hall") == {"spec": {"powerWatts": 200}}
    assert racks.get("r2") is None
    assert len(racks) == 2
    assert len(store.select(ROOMS, dict)) == 0
    assert store.counts == {RACKS: 2, ROOMS: 0}


def test_an_object_that_does_not_fit_says_where(store: ObjectStore) -> None:
    store.put(name("r3"), rack("much"))
    with pytest.raises(msgspec.ValidationError, match="powerWatts"):
        store.select(RACKS, Rack).get("r3")
    assert store.select(RACKS, Rack).get("r1") is not None


def test_changes_are_seen(store: ObjectStore) -> None:
    racks = store.select(RACKS, Rack)
    assert total(racks) == 300
    store.put(name("r1"), rack(1))
    store.remove(name("r2", "hall"))
    store.remove(name("never"))
    store.put(name("r4"), rack(4))
    assert total(racks) == total(store.select(RACKS, Rack)) == 5


def test_what_is_derived_is_made_again_only_after_a_change(store: ObjectStore) -> None:
    made: list[int] = []

    def derive(racks: Objects[Rack]) -> int:
        made.append(total(racks))
        return made[-1]

    def derived() -> int:
        return store.select(RACKS, Rack).derived("total", derive)

    assert (derived(), derived()) == (300, 300)
    store.put(ObjectName(ROOMS, "", "room"), b"{}")
    assert derived() == 300
    assert made == [300]
    store.put(name("r1"), rack(1))
    assert (derived(), derived()) == (201, 201)
    store.remove(name("r1"))
    assert derived() == 200
    assert made == [300, 201, 200]


def test_a_kind_that_nobody_reads_is_a_mistake_and_not_empty(store: ObjectStore) -> None:
    other = ObjectKind("v1", "configmaps")
    with pytest.raises(UnknownNameError, match=r"configmaps are not here.*`reads`"):
        store.select(other, dict)
    with pytest.raises(KeyError):
        store.put(ObjectName(other, "", "x"), b"{}")
    store.remove(ObjectName(other, "", "x"))


@pytest.mark.parametrize(
    ("api_version", "plural", "problem"),
    [
        ("apps/v1", "StatefulSet", "no plural"),
        ("apps", "statefulsets", "no apiVersion"),
        ("", "configmaps", "no apiVersion"),
        ("v1", "config maps", "no plural"),
        ("v1", "pods", "always there"),
        ("v1", "nodes", "always there"),
    ],
)
def test_a_kind_is_written_as_in_urls(api_version: str, plural: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        ObjectKind(api_version, plural)


@pytest.mark.parametrize("namespace", ["Prices", "a/b", "a,b", "-a", "a" * 64])
def test_a_namespace_is_one_name(namespace: str) -> None:
    with pytest.raises(ValueError, match="cannot be a namespace"):
        ObjectKind("v1", "configmaps", namespace=namespace)


def test_a_kind_with_other_selectors_is_another_kind(store: ObjectStore) -> None:
    with pytest.raises(UnknownNameError, match=r"same namespace and selectors; it has racks"):
        store.select(ObjectKind("example.com/v1", "racks", label_selector="a=b"), dict)
