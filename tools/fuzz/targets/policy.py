"""Policy files, as the gateway and `moorage config validate` read them."""

import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random

from cli.config.policies import load_registries, resolve_file
from moorage.errors import ConfigurationError
from moorage_host.policy import KINDS, decode_effective
from tools.fuzz.targets.target import ODD, Target, mutated_json, require

_LONGEST_MESSAGE = 20_000  # bytes; there is a line for each mistake

_WORDS = (
    *("moorage.io/v1alpha1", "MoorageConfiguration", "NodeResourcesFit", "InTree", "ImageScore"),
    *("multiPoint", "filter", "score", "bind", "enabled", "disabled", "args", "10ms", "Abort", "*"),
)


class Policies(Target):
    """Reading, resolving, and writing a policy again."""

    name = "policies"
    share = 12
    seconds = 4e-3
    tokens = (
        *("apiVersion: moorage.io/v1alpha1", "kind: MoorageConfiguration", "profiles:", "plugins:"),
        *("multiPoint:", "filter:", "score:", "bind:", "enabled:", "disabled:", "{name: InTree}"),
        *("pluginConfig:", "args:", "timeBudget:", "failurePolicy: Abort", "schedulerName:"),
        *(
            "weight:",
            "&a",
            "*a",
            "<<: ",
            "!!python/object",
            "? ",
            "--- ",
            "\n- ",
            "\t",
            "scoreScale: 10",
        ),
    )
    longest = 2048

    async def open(self, stack: AsyncExitStack) -> None:
        self._file = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "policy.yaml"
        self._registries = load_registries(())

    async def case(self, data: bytes) -> None:
        self._file.write_bytes(data)
        try:
            resolved = resolve_file(self._file, self._registries)
        except ConfigurationError as error:
            message = str(error)
            require(len(message) < _LONGEST_MESSAGE, "a long message", message)
            for line in message.splitlines():
                require(line.startswith(f"{self._file}:"), "a message without a place", message)
            return
        self._file.write_text(resolved.to_yaml())
        again = resolve_file(self._file, self._registries)
        require(again.to_yaml() == resolved.to_yaml(), "written otherwise than read", data)
        for kind in KINDS:
            decode_effective(resolved.for_kind(kind))

    def mutated(self, data: bytes, random: Random) -> bytes | None:
        return mutated_json(data, random, (*ODD, *_WORDS))
