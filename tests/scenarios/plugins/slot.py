"""Gives each pod a slot of its node, which its claim carries and its bind writes."""

from moorage import FilterPlugin, Node, Pod, Rejection, Scope

SLOT = "example.com/slot"
SLOTS = ("left", "right")


class Slot(FilterPlugin):
    """Gives each pod one of the two slots of its node for itself."""

    depends_on = Scope.NODE

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        taken = {other.annotations.get(SLOT) for other in node.pods}
        free = [slot for slot in SLOTS if slot not in taken]
        if not free:
            return Rejection("no slot is free", unresolvable=False)
        self.annotate(SLOT, free[0], node=node)
        return None

    def wants_claim(self, pod: Pod) -> bool:
        return True
