"""`moorage convert-policy`: what it prints and writes, and what it says about mistakes."""

import json
from pathlib import Path

import pytest
import yaml

from tests.cli.legacy.support import HEADER, POLICY, Object, moorage, names, weighted

DEPLOY = Path(__file__).parents[3] / "deploy"


def test_it_prints_both_documents_on_stdout_and_notes_on_stderr() -> None:
    result = moorage(POLICY, "--scheduler-name=batch", "--gateway=http://moorage:2")
    assert result.exit_code == 0
    upstream, beside = yaml.safe_load_all(result.stdout)
    assert upstream["kind"] == "KubeSchedulerConfiguration"
    assert beside["kind"] == "MoorageConfiguration"
    assert {each["profiles"][0]["schedulerName"] for each in (upstream, beside)} == {"batch"}
    assert upstream["extenders"][-1]["urlPrefix"] == "http://moorage:2"
    assert all(line.startswith(f"Note: {POLICY}:") for line in result.stderr.splitlines())


def test_moorage_is_called_with_a_certificate_unless_the_url_is_plain_http() -> None:
    file = DEPLOY / "kustomize" / "base" / "kube-scheduler-config.yaml"
    shipped = yaml.safe_load(file.read_text())
    names = ("urlPrefix", "enableHTTPS", "tlsConfig")
    with_certificate = moorage(POLICY)
    entry = next(yaml.safe_load_all(with_certificate.stdout))["extenders"][-1]
    assert [entry[name] for name in names] == [shipped["extenders"][0][name] for name in names]
    assert "certificate for Moorage is in /etc/moorage/tls" in with_certificate.stderr
    plain = moorage(POLICY, "--gateway=http://moorage:2")
    entry = next(yaml.safe_load_all(plain.stdout))["extenders"][-1]
    assert [entry.get(name) for name in names] == ["http://moorage:2", None, None]
    assert "certificate" not in plain.stderr


def test_it_writes_files_and_never_over_others(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    result = moorage(POLICY, "--output-dir", folder)
    files = [folder / "kube-scheduler-config.yaml", folder / "policy.yaml"]
    assert result.stdout.splitlines() == [f"wrote {file}" for file in files]
    printed = moorage(POLICY).stdout.split("---\n")
    assert [file.read_text() for file in files] == printed
    files[0].unlink()
    again = moorage(POLICY, "--output-dir", folder)
    assert again.exit_code == 1
    assert again.stderr == f"moorage: {files[1]} is there already: choose another --output-dir\n"
    assert not files[0].exists()


def test_yaml_is_read_as_well(tmp_path: Path) -> None:
    file = tmp_path / "policy.yml"
    file.write_text("apiVersion: v1\nkind: Policy\npredicates:\n- name: HostName\n")
    result = moorage(file)
    assert result.exit_code == 0
    assert f"Note: {file}:4: predicates[0]: HostName became NodeName\n" in result.stderr


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"apiVersion": "v2"}, 'apiVersion: expected "v1" or "kubescheduler.config.k8s.io/v1"'),
        ({"kind": "Pod"}, 'kind: expected "Policy", got str "Pod"'),
        ({"kind": "ConfigMap"}, "kind: a ConfigMap holds the Policy as text"),
        ({"predicate": []}, "predicate: unknown field `predicate`, did you mean `predicates`?"),
        ({"algorithmSource": {}}, "algorithmSource: unknown field `algorithmSource`: it belongs"),
        (
            {"predicates": names("PodFitsResource")},
            "predicates[0].name: unknown predicate `PodFitsResource`, did you mean",
        ),
        (
            {"predicates": names("zzz")},
            "predicates[0].name: unknown predicate `zzz`; a predicate of your own needs",
        ),
        (
            {"priorities": weighted(EqualPrority=1)},
            "priorities[0].name: unknown priority `EqualPrority`, did you mean `EqualPriority`?",
        ),
        ({"priorities": names("EqualPriority")}, "priorities[0]: field `weight` is missing"),
        (
            {"priorities": weighted(EqualPriority=0)},
            "priorities[0].weight: expected an integer from 1 to 2147483647, got int 0",
        ),
        (
            {"hardPodAffinitySymmetricWeight": 101},
            "hardPodAffinitySymmetricWeight: expected an integer from 0 to 100, got int 101",
        ),
        (
            {"extenders": [{"urlPrefix": "http://x", "httpTimeout": "5s"}]},
            "extenders[0].httpTimeout: expected a whole number of nanoseconds, such as 5000000000",
        ),
        (
            {"extenders": [{"urlPrefix": "http://x", "prioritizeVerb": "p"}]},
            "extenders[0]: prioritizeVerb needs a weight above 0",
        ),
        (
            {"extenders": [{"urlPrefix": "http://x", "bindVerb": "b"}] * 2},
            "extenders[1].bindVerb: only one extender may bind: extenders[0] has one",
        ),
        (
            {"extenders": [{"urlPrefix": "http://x", "managedResources": names("cpu")}]},
            "extenders[0].managedResources[0].name: `cpu` is no extended resource: DOMAIN/NAME",
        ),
        (
            {
                "extenders": [
                    {"urlPrefix": "http://x", "tlsConfig": {"caData": "x", "insecure": True}}
                ]
            },
            "extenders[0].tlsConfig.insecure: cannot be true together with a CA",
        ),
    ],
)
def test_a_mistake_is_told_with_its_path(tmp_path: Path, fields: Object, problem: str) -> None:
    file = tmp_path / "legacy.json"
    file.write_text(json.dumps(HEADER | fields))
    result = moorage(file)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"{file}:1: {problem}"), result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("points", "place"), [([(10, 1), (5, 2)], 1), ([(0, 0), (50, 5), (50, 6)], 2)]
)
def test_a_curve_must_rise_in_utilization(
    tmp_path: Path, points: list[tuple[int, int]], place: int
) -> None:
    shape = [{"utilization": utilization, "score": score} for utilization, score in points]
    argument = {"requestedToCapacityRatioArguments": {"shape": shape}}
    file = tmp_path / "legacy.json"
    own = {"name": "Mine", "weight": 1, "argument": argument}
    file.write_text(json.dumps({**HEADER, "priorities": [own]}))
    path = f"priorities[0].argument.requestedToCapacityRatioArguments.shape[{place}].utilization"
    assert f"{path}: must be above that of the point before" in moorage(file).stderr
