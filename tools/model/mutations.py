"""The safeguards without which the model must break a rule, and how each is taken out."""

from collections.abc import Mapping, Sequence

from tools.mutations import Edit

FENCE = "services/binder/binding/fence.py"

MUTATIONS: Mapping[str, Sequence[Edit]] = {
    "no check at /bind": [
        Edit(
            file="gateway/cycle/bind_check.py",
            old="cause = self._cause(pod, call, decision, epoch) if pod is not None else None",
            new="cause = None",
        )
    ],
    "no fence at the binder": [
        Edit(file=FENCE, old="if 0 < epoch < self.epoch:", new="if 0 < epoch < 0:")
    ],
    "a barrier does not wait for POSTs": [
        Edit(file=FENCE, old="await self._settle(epoch)", new="await asyncio.sleep(0)"),
        Edit(file=FENCE, old="if guard.has_written)", new="if False)"),
    ],
    "a barrier does not name what was written": [
        Edit(file=FENCE, old="self._recall() if is_held", new="([], self._recall()[1]) if is_held")
    ],
    "no fresh list when the binder's memory is short": [
        Edit(
            file="gateway/leadership/catch_up.py",
            old="await self._cluster.until_pods_as_of(fenced.complete_since)",
            new="await asyncio.sleep(0)",
        )
    ],
    "a bound pod that the watch has not shown is left out": [
        Edit(
            file="gateway/leadership/catch_up.py",
            old='read_now.spec.node_name in ("", bind.node):',
            new="not read_now.spec.node_name:",
        )
    ],
    "an unknown outcome frees the node": [
        Edit(file="gateway/binding/binding.py", old="if failure.code in REFUSALS:", new="if True:")
    ],
}
