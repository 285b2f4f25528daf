"""Keeps pods off nodes that they would likely overload, like IBM's kube-safe-scheduler."""

import numpy as np

from moorage import Arguments, FilterPlugin, Nodes, Pod, Rejection, Verdicts
from moorage.measurements import MeasuringPlugin, NoMeasurementsError
from moorage.measurements.load import LoadMeter
from moorage.measurements.risk import SafeArguments, overload_risk

OVERLOAD = Rejection("node would likely be overloaded", cured_by="capacity")
NOT_MEASURED = Rejection("node has no measurements of its load")


class SafeOverload(MeasuringPlugin, FilterPlugin):
    """Keeps pods off nodes that they would likely overload, by measured load.

    Both reasons are unresolvable: what pods use is measured, so evicting some changes nothing yet.
    """

    class Args(SafeArguments):
        """What counts as overload, and where to learn how busy nodes are."""

    source: LoadMeter

    def __init__(self, args: Arguments | None = None) -> None:
        """Take the arguments."""
        super().__init__(args)
        self.source = LoadMeter(self.args)

    def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
        """Reject nodes with a higher risk than tolerable; those without measurements pass.

        Unless `onMissing` says otherwise: "worst" rejects them, "fail" fails.
        """
        risk = overload_risk(self.source, self.args, pod, nodes)
        self.note_missing(nodes, risk, self.args.on_missing)
        missing = np.isnan(risk)
        if self.args.on_missing == "fail" and missing.any():
            self.source.check()  # which knows more about it
            raise NoMeasurementsError("there are nodes without measurements")
        verdicts = nodes.verdicts()
        if self.args.on_missing == "worst":
            verdicts.reject(missing, NOT_MEASURED)
        return verdicts.reject(risk > self.args.safe_percentile / 100, OVERLOAD)
