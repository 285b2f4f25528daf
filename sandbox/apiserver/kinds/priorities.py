"""PriorityClasses, and the priority that admission gives to a pod from them."""

from collections.abc import Iterator

from sandbox.apiserver.errors import Cause, forbidden, forbidden_value
from sandbox.apiserver.kinds.hooks import Hooks, Reader
from sandbox.apiserver.resources.resource import Object

CLASSES = "scheduling.k8s.io/priorityclasses"
SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
HIGHEST_USER_VALUE = 1_000_000_000
LOWER_PRIORITY = "PreemptLowerPriority"


def resolve_priority(store: Reader, pod: Object) -> None:
    """Set the pod's priority, class name and preemption policy from its PriorityClass.

    Raises:
        StatusError: 403, the class does not exist or the pod brought another priority.
    """
    spec, name = pod["spec"], pod["metadata"].get("name", "")
    found = _class_of(store, spec.get("priorityClassName", ""))
    if found is None:
        wanted = spec["priorityClassName"]
        raise forbidden("pods", name, f"no PriorityClass with name {wanted} was found")
    if found:
        spec["priorityClassName"] = found["metadata"]["name"]
    value, policy = found.get("value", 0), found.get("preemptionPolicy", LOWER_PRIORITY)
    if spec.get("priority", value) != value:
        raise forbidden("pods", name, _MISMATCH.format("integer value of priority", spec, value))
    spec["priority"] = value
    spec.setdefault("preemptionPolicy", policy)


_MISMATCH = (
    "the {0} ({1[priority]}) must not be provided in pod spec; "
    "priority admission controller computed {2} from the given PriorityClass name"
)


def _class_of(store: Reader, name: str) -> Object | None:
    if name:
        return store.find(CLASSES, "", name)
    defaults = [each for each in store.objects(CLASSES) if each.get("globalDefault")]
    # With several defaults Kubernetes takes the lowest.
    return min(defaults, key=lambda each: int(each.get("value", 0)), default={})


def _default(priority_class: Object) -> None:
    priority_class.setdefault("value", 0)
    priority_class.setdefault("preemptionPolicy", LOWER_PRIORITY)


def _validate(priority_class: Object) -> Iterator[Cause]:
    name, value = priority_class["metadata"].get("name"), priority_class["value"]
    if value > HIGHEST_USER_VALUE and SYSTEM_CLASSES.get(str(name)) != value:
        why = f"maximum allowed value of a user defined priority is {HIGHEST_USER_VALUE}"
        yield forbidden_value("value", why)


def _validate_update(new: Object, old: Object) -> Iterator[Cause]:
    if new.get("value", 0) != old.get("value", 0):
        yield forbidden_value("value", "may not be changed in an update.")


HOOKS = Hooks(default=_default, validate=_validate, validate_update=_validate_update)
