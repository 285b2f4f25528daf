"""Keeps pods apart that mount the same disk, like kube-scheduler's plugin of the same name."""

from moorage import SKIP, FilterPlugin, Nodes, Pod, Preparation, Rejection, Scope, Verdicts
from moorage.plugin.pod_fields import DISK_FIELDS

REASON = Rejection("node(s) had no available disk", unresolvable=False)


class VolumeRestrictions(FilterPlugin):
    """Keeps pods off nodes where one of their disks is mounted, unless all mounts only read.

    Disks are gcePersistentDisk, awsElasticBlockStore (where readers conflict as well), iscsi and
    rbd. The access mode ReadWriteOncePod is left to kube-scheduler, as nobody watches
    PersistentVolumeClaims.
    """

    depends_on = Scope.NODE
    reads_placements = False  # kube-scheduler's own filter sees assumed pods
    pod_fields = DISK_FIELDS

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        """Skip pods without such disks."""
        return None if pod.disks else SKIP

    def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
        """Reject nodes where one of the pod's disks is in use."""
        return nodes.verdicts().reject(nodes.disk_conflicts(pod.disks), REASON)
