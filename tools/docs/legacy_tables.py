"""The tables about the Policy of kube-scheduler before 1.23."""

from cli.legacy.names import (
    MANDATORY,
    PREDICATE_REMARKS,
    PREDICATES,
    PRIORITIES,
    PRIORITY_REMARKS,
    STRATEGIES,
)
from tools.docs.markdown import code, escaped, table


def legacy(name: str) -> str:
    """Return what each predicate or priority became."""
    return {"predicates": _predicates, "priorities": _priorities}[name]()


def _predicates() -> str:
    return table(
        ("predicate", "filter today", "remark"),
        (
            (
                code(name),
                ", ".join(map(code, filters)),
                PREDICATE_REMARKS.get(name, "")
                or ("always on" if filters[0] in MANDATORY and len(filters) == 1 else ""),
            )
            for name, filters in PREDICATES.items()
        ),
    )


def _priorities() -> str:
    return table(
        ("priority", "score today", "remark"),
        (
            (code(name), _upstream(name, plugin), _remark(name))
            for name, plugin in PRIORITIES.items()
        ),
    )


def _upstream(name: str, plugin: str | None) -> str:
    if plugin is None:
        return "none"
    return f"{code(plugin)}, {code(STRATEGIES[name])}" if name in STRATEGIES else code(plugin)


def _remark(name: str) -> str:
    return escaped(PRIORITY_REMARKS.get(name, ""))
