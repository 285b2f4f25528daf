"""kube-scheduler's configuration for a policy, from the one of a layout."""

import yaml

from cli.config.entries import plan_entries
from cli.config.extender import extender_yaml
from cli.install.kubectl import InstallError
from moorage_host.policy import ResolvedPolicy

OWN = "default-scheduler"
"""The profile of the cluster's own kube-scheduler, which it keeps."""


def configuration_for(shipped: str, policy: ResolvedPolicy) -> str:
    """Return a layout's configuration with the profiles and extender entries of a policy.

    Raises:
        InstallError: With this layout Moorage's own pods would wait for themselves.
    """
    document = yaml.safe_load(shipped)
    (entry, *_) = document["extenders"]
    served = [each["schedulerName"] for each in document["profiles"]]
    names = [*(name for name in served if name == OWN), *policy.profile_names]
    entries = plan_entries(policy, ignorable=entry["ignorable"])
    if OWN in served and entry["ignorable"] and any("bind" in each.verbs for each in entries):
        raise InstallError(
            f"{policy.source}: the policy needs Moorage to bind pods, and with --layout "
            "control-plane Moorage's own pods would not be bound once it is down: "
            "take --layout control-plane-strict"
        )
    head = shipped.partition("\nprofiles:")[0]
    profiles = "".join(f"- schedulerName: {name}\n" for name in dict.fromkeys(names))
    extenders = extender_yaml(entries, entry["urlPrefix"], policy.score_scale)
    return f"{head}\nprofiles:\n{profiles}\n{extenders}"
