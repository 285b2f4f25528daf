"""Finds plugin classes and runs their instances for a policy."""

from moorage_host.plugins.host import PluginHost
from moorage_host.plugins.replica import CycleInput, Replica

__all__ = ["CycleInput", "PluginHost", "Replica"]
