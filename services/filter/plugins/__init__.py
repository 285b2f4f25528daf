"""The filter plugins that come with the service; the policy decides which of them run."""

from moorage.in_tree.filters import FILTERS
from services.filter.plugins.gang import Gang
from services.filter.plugins.license_seats import LicenseSeats
from services.filter.plugins.maintenance_windows import MaintenanceWindows
from services.filter.plugins.node_group import NodeGroup
from services.filter.plugins.one_node_per_pipeline_run import OneNodePerPipelineRun
from services.filter.plugins.safe_overload import SafeOverload
from services.filter.plugins.stateful_set_zone import StatefulSetZone

BUILT_INS = (
    *FILTERS,
    NodeGroup,
    SafeOverload,
    OneNodePerPipelineRun,
    StatefulSetZone,
    Gang,
    LicenseSeats,
    MaintenanceWindows,
)
