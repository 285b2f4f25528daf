"""Whose a bearer token is, and what its user may do."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from moorage.errors import ConfigurationError
from sandbox.apiserver import ApiServer, Settings
from tests.sandbox.apiserver.support import Http

RBAC = "/apis/rbac.authorization.k8s.io/v1"
TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
METRICS = {"nonResourceAttributes": {"path": "/metrics", "verb": "get"}}


@pytest.fixture
async def http(tmp_path: Path) -> AsyncIterator[Http]:
    file = tmp_path / "accounts.csv"
    file.write_text('t0k3n,ann,7,"team, others"\nother,bob,8\n\n')
    async with (
        ApiServer(Settings(token_auth_file=file)) as server,
        aiohttp.ClientSession(server.url) as session,
    ):
        yield Http(session)


async def grant(http: Http, rule: object, subject: object, namespace: str = "") -> None:
    """Let a subject do something, everywhere or in a namespace."""
    kind = "rolebindings" if namespace else "clusterrolebindings"
    space = f"/namespaces/{namespace}" if namespace else ""
    role = {"metadata": {"name": "r"}, "rules": [rule]}
    await http.create(f"{RBAC}/clusterroles", role)
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}
    bound = {"metadata": {"name": "b"}, "roleRef": reference, "subjects": [subject]}
    await http.create(f"{RBAC}{space}/{kind}", bound)


async def allowed(http: Http, **spec: Any) -> bool:
    created = await http.create(ACCESS, {"spec": spec})
    return bool(created["status"]["allowed"])


async def test_tokens_in_the_file_are_known(http: Http) -> None:
    status = (await http.create(TOKENS, {"spec": {"token": "t0k3n"}}))["status"]
    groups = ["team", "others", "system:authenticated"]
    assert status == {
        "authenticated": True,
        "user": {"username": "ann", "uid": "7", "groups": groups},
    }
    for unknown in ("t0k3", "ann"):
        status = (await http.create(TOKENS, {"spec": {"token": unknown}}))["status"]
        assert status["authenticated"] is False
    assert (await http.send("POST", TOKENS, {"spec": {}})).code == 422


@pytest.mark.parametrize(
    ("subject", "caller"),
    [
        ({"kind": "User", "name": "ann"}, {"user": "ann"}),
        ({"kind": "Group", "name": "team"}, {"user": "eve", "groups": ["team"]}),
        (
            {"kind": "ServiceAccount", "namespace": "mon", "name": "prom"},
            {"user": "system:serviceaccount:mon:prom"},
        ),
    ],
)
async def test_a_binding_grants_its_role_to_its_subjects(
    http: Http, subject: object, caller: dict[str, Any]
) -> None:
    assert not await allowed(http, **caller, **METRICS)
    rule = {"nonResourceURLs": ["/metrics", "/decisions/*"], "verbs": ["get"]}
    await grant(http, rule, subject)
    for path, verb, expected in (
        ("/metrics", "get", True),
        ("/decisions/default/web", "get", True),
        ("/metrics/more", "get", False),
        ("/metrics", "post", False),
    ):
        url = {"path": path, "verb": verb}
        assert await allowed(http, **caller, nonResourceAttributes=url) is expected, url
    assert not await allowed(http, user="bob", groups=["system:authenticated"], **METRICS)
    assert await allowed(http, user="root", groups=["system:masters"], **METRICS)


async def test_a_role_binding_counts_in_its_namespace(http: Http) -> None:
    rule = {"apiGroups": [""], "resources": ["pods", "*/log"], "verbs": ["*"]}
    await grant(http, rule, {"kind": "User", "name": "ann"}, "default")
    for asked, expected in (
        ({"resource": "pods", "namespace": "default"}, True),
        ({"resource": "pods", "subresource": "log", "namespace": "default"}, True),
        ({"resource": "pods", "subresource": "binding", "namespace": "default"}, False),
        ({"resource": "pods", "namespace": "other"}, False),
        ({"resource": "pods"}, False),
        ({"resource": "jobs", "group": "batch", "namespace": "default"}, False),
    ):
        attributes = {"verb": "list", **asked}
        assert await allowed(http, user="ann", resourceAttributes=attributes) is expected, asked


@pytest.mark.parametrize("spec", [{}, METRICS, {"user": "ann"}, {**METRICS, "user": ""}])
async def test_a_review_without_a_user_or_a_question_is_refused(http: Http, spec: object) -> None:
    assert (await http.send("POST", ACCESS, {"spec": spec})).code == 422


@pytest.mark.parametrize("line", ["token,user", ",user,1", 'token,user,1,"a"b', "a,b,c,d,e"])
def test_a_bad_line_is_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "accounts.csv"
    file.write_text(f"t0k3n,ann,7\n{line}\n")
    with pytest.raises(ConfigurationError, match=r"accounts\.csv") as raised:
        ApiServer(Settings(token_auth_file=file))
    assert "t0k3n" not in str(raised.value)
