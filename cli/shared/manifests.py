"""Reads Kubernetes objects from files: manifests, or what `kubectl get ... -o json|yaml` prints."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from moorage.errors import ConfigurationError

Object = dict[str, Any]


def read_located(path: Path) -> Iterator[tuple[str, Object]]:
    """Yield the objects in a file, those in lists one by one, each with its place for messages.

    Each has a kind, and metadata with a name or a generateName.

    Raises:
        ConfigurationError: The file cannot be read, or has something else in it;
            the message names the place.
    """
    for index, document in enumerate(_documents(path)):
        where = f"{path}: document {index + 1}"
        if document is None:
            continue
        kind = document.get("kind") if isinstance(document, dict) else None
        if not isinstance(kind, str):
            raise ConfigurationError(f"{where} is no Kubernetes object: it has no kind")
        if not kind.endswith("List"):
            yield where, _checked(document, where)
            continue
        items = document.get("items") or []
        if not isinstance(items, list):
            raise ConfigurationError(f"{where}: items is no list")
        # The items of a PodList, as the API itself writes it, do not repeat what they are.
        default = {"kind": kind.removesuffix("List")} if kind != "List" else {}
        if default and document.get("apiVersion"):
            default["apiVersion"] = document["apiVersion"]
        for number, item in enumerate(items):
            inner = f"{where}: items[{number}]"
            whole = {**default, **item} if isinstance(item, dict) else item
            yield inner, _checked(whole, inner)


def _checked(obj: Any, where: str) -> Object:
    if not isinstance(obj, dict) or not isinstance(obj.get("kind"), str):
        raise ConfigurationError(f"{where} is no Kubernetes object: it has no kind")
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        raise ConfigurationError(f"{where}: the {obj['kind']} has no metadata")
    if not isinstance(obj.get("apiVersion", ""), str):
        raise ConfigurationError(f"{where}: apiVersion of the {obj['kind']} must be text")
    if not all(isinstance(metadata.get(k, ""), str) for k in ("name", "namespace")):
        raise ConfigurationError(f"{where}: name and namespace of the {obj['kind']} must be text")
    if not metadata.get("name") and not metadata.get("generateName"):
        raise ConfigurationError(f"{where}: the {obj['kind']} has no name")
    return obj


def _documents(path: Path) -> list[Any]:
    try:
        text = path.read_text(encoding="utf-8")
        # The YAML parser reads JSON too, but a large dump would take it minutes.
        if text.lstrip().startswith("{") and "\n---" not in text:
            return [json.loads(text)]
        return list(yaml.load_all(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from error
    except json.JSONDecodeError as error:
        raise ConfigurationError(f"{path}:{error.lineno}: not JSON: {error.msg}") from error
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ConfigurationError(f"{path}{line}: not YAML: {error.problem}") from error
    except (ValueError, yaml.YAMLError) as error:
        text = " ".join(str(error).split())
        raise ConfigurationError(f"{path}: neither YAML nor JSON: {text}") from error
