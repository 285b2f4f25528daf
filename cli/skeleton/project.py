"""What `moorage new-plugin --package` adds to a plugin; used by `cli.skeleton.texts`."""

PYPROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "$project"
version = "0.1.0"
description = "The plugin $plugin for Moorage."
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["moorage"]

[project.optional-dependencies]
dev = ["mypy", "pytest"]

# Where Moorage's services look for plugins.
[project.entry-points."moorage.$kind"]
$plugin = "$module:$plugin"

[tool.hatch.build.targets.wheel]
packages = ["src/$module"]

[tool.mypy]
strict = true
files = ["src", "tests"]
mypy_path = "src"

[tool.pytest.ini_options]
testpaths = ["tests"]
pythonpath = ["src"]
"""

README = """\
# $project

The $kind plugin `$plugin` for Moorage: Kubernetes scheduling logic in Python.

In an environment where Moorage is installed:

```sh
python -m pip install -e '.[dev]'
python -m pytest
python -m mypy
moorage config validate policy.yaml
moorage up --once --nodes 3 --pods 3 --config policy.yaml
```

Once it is installed, Moorage finds the plugin by the entry point in `pyproject.toml`. A policy
enables it: `policy.yaml` is the smallest one. `moorage config extender policy.yaml` prints what
kube-scheduler's configuration needs.

In a cluster, put the package on top of the image that Moorage runs:

```dockerfile
FROM python:3.13-slim-bookworm AS build
COPY . /src
RUN ["pip", "install", "--no-deps", "--target=/packages", "/src"]

FROM registry.example.com/moorage:1
COPY --from=build /packages /moorage/packages
```
"""

POLICY = """\
apiVersion: moorage.io/v1alpha1
kind: MoorageConfiguration
profiles:
- schedulerName: moorage  # of the pods that this is for
  plugins:
    multiPoint:
      enabled:
      - name: $plugin
"""
