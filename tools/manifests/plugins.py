"""What the chart has to know of the built-in plugins: the verbs of kube-scheduler's extender."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import PurePosixPath

import yaml

from cli.config.extender import plan_entries
from cli.config.policies import load_registries, plugin_infos
from moorage_host.kube_scheduler import VERBS, Verb
from moorage_host.policy import API_VERSION, IN_TREE, KIND, Catalogue, examine, resolve

FILE = PurePosixPath("files/plugins.yaml")
"""Its place in the chart."""

HEAD = """\
# The verbs of an extender that each built-in plugin needs, as `moorage config extender` knows them.
# Written by `make manifests`.
"""


def verbs_of(plugins: Iterable[str]) -> list[Verb]:
    """Return the verbs that a policy with these plugins needs."""
    enabled = [{"name": name} for name in plugins]
    profile = {"plugins": {"multiPoint": {"enabled": enabled}}}
    document = {"apiVersion": API_VERSION, "kind": KIND, "profiles": [profile]}
    policy = resolve(examine(yaml.safe_dump(document), "policy"), _catalogue())
    needed = {verb for entry in plan_entries(policy) for verb in entry.verbs}
    return [verb for verb in VERBS if verb in needed]


def names() -> list[str]:
    """Return what a policy can enable without plugins of others."""
    found = {name for registry in load_registries(()).values() for name in registry}
    return sorted({*found, IN_TREE})


def table() -> str:
    """Return the content of the file."""
    return HEAD + "".join(f"{name}: [{', '.join(verbs_of([name]))}]\n" for name in names())


def _catalogue() -> Catalogue:
    """Return the built-in plugins without their arguments, of which some have no default."""
    infos = (info for registry in load_registries(()).values() for info in plugin_infos(registry))
    return Catalogue(replace(info, args_type=None) for info in infos)
