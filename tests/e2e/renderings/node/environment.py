"""The environment and the command line of a container, from its template."""

import re
from collections.abc import Iterable, Mapping

from tests.e2e.renderings.node.api import Api, MissingError
from tests.e2e.renderings.node.volumes import data_of, field
from tools.planes.embedded import Object

RESOURCES = {"configMapRef": "configmaps", "secretRef": "secrets"}
KEYS = {"configMapKeyRef": "configmaps", "secretKeyRef": "secrets"}


async def environment(
    api: Api, pod: Object, container: Object, services: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables of a container.

    Args:
        api: Where ConfigMaps and Secrets are.
        pod: The pod, with status.podIP.
        container: The container.
        services: The variables of Services.

    Raises:
        MissingError: A ConfigMap, a Secret or a key does not exist.
    """
    made = dict(services)
    for source in container.get("envFrom") or ():
        for kind in RESOURCES.keys() & source.keys():
            made |= await _all_keys(api, pod, source, kind)
    for variable in container.get("env") or ():
        if "valueFrom" not in variable:
            made[variable["name"]] = expand(variable.get("value", ""), made)
        elif (value := await _from(api, pod, variable["valueFrom"])) is not None:
            made[variable["name"]] = value
    return made


def command(container: Object, variables: Mapping[str, str]) -> list[str]:
    """Return the command and the arguments; images of ours have no entry point to fall back on.

    Raises:
        MissingError: The container has no command.
    """
    if not container.get("command"):
        raise MissingError(f"container {container['name']} has no command")
    words = [*container["command"], *(container.get("args") or ())]
    return [expand(word, variables) for word in words]


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace $(NAME); $$ is a dollar, and names that are unknown stay as they are."""

    def value(found: re.Match[str]) -> str:
        return "$" if found[0] == "$$" else variables.get(found[1], found[0])

    return re.sub(r"\$\$|\$\(([\w.-]+)\)", value, text)


def service_links(services: Iterable[Object], namespace: str, *, wanted: bool) -> dict[str, str]:
    """Return the variables of the API server's Service and, if wanted, of those beside the pod."""
    made = {}
    for service in services:
        metadata, spec = service["metadata"], service["spec"]
        own = metadata["namespace"] == namespace and wanted
        kubernetes = (metadata["namespace"], metadata["name"]) == ("default", "kubernetes")
        if spec["clusterIP"] != "None" and (own or kubernetes):
            name = metadata["name"].upper().replace("-", "_")
            made[f"{name}_SERVICE_HOST"] = spec["clusterIP"]
            made[f"{name}_SERVICE_PORT"] = str(spec["ports"][0]["port"])
    return made


async def _all_keys(api: Api, pod: Object, source: Object, kind: str) -> dict[str, str]:
    reference = source[kind]
    obj = await api.find(RESOURCES[kind], pod["metadata"]["namespace"], reference["name"])
    if obj is None:
        if reference.get("optional"):
            return {}
        raise MissingError(f'{RESOURCES[kind][:-1]} "{reference["name"]}" not found')
    prefix = source.get("prefix", "")
    return {f"{prefix}{key}": value.decode() for key, value in data_of(obj).items()}


async def _from(api: Api, pod: Object, source: Object) -> str | None:
    if reference := source.get("fieldRef"):
        return field(pod, reference["fieldPath"])
    for kind in KEYS.keys() & source.keys():
        reference = source[kind]
        obj = await api.find(KEYS[kind], pod["metadata"]["namespace"], reference["name"])
        content = data_of(obj) if obj else {}
        if reference["key"] in content:
            return content[reference["key"]].decode()
        if reference.get("optional"):
            return None
        raise MissingError(f"{KEYS[kind][:-1]} {reference['name']} has no key {reference['key']}")
    raise NotImplementedError(f"a variable from {source}")
