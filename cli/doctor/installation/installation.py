"""What checks look at: all that was read of an installation, at one time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from cli.doctor.installation.certificates import Identities
from cli.doctor.installation.gateway import GatewayReport, Own, Policy, Replicas
from cli.doctor.installation.known import Missing, NotReadError, known
from cli.doctor.installation.objects import ApiServer, Object, Objects
from cli.doctor.installation.pods import runs
from cli.doctor.installation.processes import Processes
from cli.doctor.installation.release import Release
from cli.doctor.installation.schedulers import Scheduler
from sandbox.scheduler.config import Configuration, ExtenderConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An extender of a kube-scheduler.

    Attributes:
        place: Where it is, for people: "extenders[0] in ConfigMap ...".
        scheduler: Whose it is.
        extender: The entry.
    """

    place: str
    scheduler: Scheduler
    extender: ExtenderConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """An installation of Moorage.

    Attributes:
        namespace: Where its processes run.
        now: The time of this machine at which it was read.
        objects: The objects of the cluster.
        api_server: The API server.
        schedulers: The kube-schedulers with a configuration of their own.
        gateway: What the gateway that decides reports.
        processes: What each process reports.
        identities: The certificates.
        release: What the release has beside what the cluster has.
        managed_resources: Those that plugins declare that are known here, by plugin.
    """

    namespace: str
    now: datetime
    objects: Objects
    api_server: ApiServer | Missing
    schedulers: Sequence[Scheduler] = ()
    gateway: GatewayReport | Missing
    processes: Processes = field(default_factory=dict)
    identities: Identities = field(default_factory=dict)
    release: Release | Missing
    managed_resources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def report(self) -> GatewayReport:
        """What the gateway reports.

        Raises:
            NotReadError: It does not answer.
        """
        if isinstance(self.gateway, Missing):
            raise NotReadError("the gateway does not answer")
        return self.gateway

    @property
    def replicas(self) -> Replicas:
        """What the gateway reports of who takes part."""
        return known(self.report.replicas)

    @property
    def own(self) -> Own:
        """What the gateway reports of itself."""
        return self.replicas.gateway

    @property
    def policy(self) -> Policy:
        """What the gateway reports of the active policy."""
        return known(self.report.policy)

    @property
    def configurations(self) -> Sequence[tuple[Scheduler, Configuration]]:
        """The kube-schedulers that ask an extender, with their configurations.

        Raises:
            NotReadError: There is none, or its configuration could not be read.
        """
        found = [
            (scheduler, scheduler.configuration)
            for scheduler in self.schedulers
            if not isinstance(scheduler.configuration, Missing)
            and scheduler.configuration.extenders
        ]
        if found:
            return found
        unread = [
            each.configuration.reason
            for each in self.schedulers
            if isinstance(each.configuration, Missing)
        ]
        raise NotReadError(
            "; ".join(unread) or "no kube-scheduler with an extender was found: give --config FILE"
        )

    @property
    def entries(self) -> Sequence[Entry]:
        """The extenders of kube-schedulers; those of others are left out where ours are known.

        Raises:
            NotReadError: There is none, or no configuration could be read.
        """
        every = [
            Entry(
                place=f"extenders[{index}] in {scheduler.source}",
                scheduler=scheduler,
                extender=extender,
            )
            for scheduler, configuration in self.configurations
            for index, extender in enumerate(configuration.extenders)
        ]
        return [each for each in every if self._may_be_ours(each.extender)] or every

    def pods(self, service: str) -> Iterator[Object]:
        """Yield the pods that run a service of Moorage.

        Raises:
            NotReadError: The pods could not be read.
        """
        return (pod for pod in self.objects.of("pods") if runs(pod, service))

    def _may_be_ours(self, extender: ExtenderConfig) -> bool:
        """Whether an address can be that of the gateway."""
        tls = extender.tls_config
        words = (extender.url_prefix, tls.server_name if tls else "")
        return any("moorage" in word or "gateway" in word for word in words) or any(
            f"//{host}" in extender.url_prefix for host in self._addresses()
        )

    def _addresses(self) -> Iterator[str]:
        yield from ("127.0.0.1", "localhost", "[::1]")
        try:
            for service in self.objects.of("services"):
                yield service["spec"].get("clusterIP") or "None"
        except NotReadError:
            return
