"""The bind plugins that come with the binder; the policy decides which of them run."""

from services.binder.plugins.decision_annotation import DecisionAnnotation
from services.binder.plugins.gang_permit import GangPermit

BUILT_INS = (DecisionAnnotation, GangPermit)
