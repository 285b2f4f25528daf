"""Probes of containers, asked as a kubelet asks them."""

import aiohttp

from tests.e2e.renderings.node.network import Opens, Sandbox
from tools.planes.embedded import Object

DEFAULTS = {"periodSeconds": 10, "timeoutSeconds": 1, "failureThreshold": 3, "successThreshold": 1}


class Probe:
    """One probe.

    Attributes:
        problem: Why the last try failed, "" if it did not.
        period: Seconds between tries.
        allowed: How many tries in a row may fail.
    """

    def __init__(self, probe: Object, container: Object, sandbox: Sandbox, opens: Opens) -> None:
        values = DEFAULTS | probe
        self.problem = "not asked yet"
        self.period = float(values["periodSeconds"])
        self.allowed = int(values["failureThreshold"])
        self._timeout = float(values["timeoutSeconds"])
        if set(probe) - set(DEFAULTS) - {"httpGet", "initialDelaySeconds"}:
            raise NotImplementedError(f"a probe with {sorted(probe)}")
        get = probe["httpGet"]
        port = get["port"]
        if isinstance(port, str):
            named = {each.get("name"): each["containerPort"] for each in container["ports"]}
            port = named[port]
        host = get.get("host") or sandbox.address
        scheme = get.get("scheme", "HTTP").lower()
        self._url = f"{scheme}://{host}:{port}{get.get('path', '/')}"
        # The kubelet asks from the network of the node, in which pods on the host network are.
        self._opens = sandbox.opens if host == "127.0.0.1" else opens

    async def succeeds(self) -> bool:
        """Ask once."""
        # Kubelets check no certificate.
        connector = aiohttp.TCPConnector(ssl=False, socket_factory=self._opens)
        timeout = aiohttp.ClientTimeout(total=self._timeout)
        try:
            async with (
                aiohttp.ClientSession(connector=connector, timeout=timeout) as session,
                session.get(self._url, allow_redirects=False) as response,
            ):
                fine = 200 <= response.status < 400
                self.problem = "" if fine else f"{response.status} {await response.text()}"[:2000]
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self.problem = f"{type(error).__name__}: {error}"
        if self.problem:
            self.problem = f"{self._url}: {self.problem}"
        return not self.problem
