"""Finds ports that nobody listens on."""

import random
import socket
from contextlib import ExitStack

from moorage.errors import ConfigurationError

PORTS = range(20_000, 32_000)
"""Where ports are taken from that the user did not choose."""


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on now.

    They lie below the range from which Linux takes the ports of outgoing connections, so that none
    of these gets in the way before the port is used.
    """
    with ExitStack() as stack:
        found: list[int] = []
        for port in random.sample(PORTS, len(PORTS)):
            if len(found) == count:
                return found
            try:
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
            except OSError:
                continue
            found.append(port)
    raise ConfigurationError(f"fewer than {count} of the ports {PORTS[0]} to {PORTS[-1]} are free")
