"""Where a request stands: by its name, its kind and its verb."""

from __future__ import annotations

import pytest

from tests.faults.addresses import Asked, Nature, pinned

CLAIMS = "/apis/bullpen.dev/v1alpha1/virtualmachineclaims"
VMS = "/apis/kubevirt.io/v1/virtualmachines"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/bullpen"


@pytest.mark.parametrize(
    ("asked", "address"),
    [
        (Asked("PATCH", "/x/namespaces/a/virtualmachines/b", "timeout=1s", "hand-over/vm"), "hand-over/vm"),
        (Asked("GET", CLAIMS, "limit=250", "list"), "list/virtualmachineclaims"),
        (Asked("GET", VMS, "watch=true&resourceVersion=3", "watch"), "watch/virtualmachines"),
        (Asked("GET", "/api/v1/nodes", "limit=250", "list"), "list/nodes"),
        (Asked("GET", CLAIMS.replace("claims", "pools"), "", "pools"), "list/virtualmachinepools"),
        (Asked("GET", CLAIMS.replace("claims", "pools"), "watch=true", "pools"), "watch/virtualmachinepools"),
        (Asked("GET", "/x/namespaces/a/virtualmachineclaims", "", "list"), "list/virtualmachineclaims"),
        (Asked("GET", "/apis/bullpen.dev", "", "pools"), "pools/discovery"),
        (Asked("GET", LEASE, "", "lease"), "lease/read"),
        (Asked("PUT", LEASE, "", "lease"), "lease/write"),
        (Asked("GET", VMS, "limit=500", "resync/list"), "resync/list"),
    ],
)
def test_a_request_has_an_address(asked: Asked, address: str) -> None:
    assert asked.address == address


def test_a_request_without_a_name_is_not_taken_for_a_step() -> None:
    assert Asked("GET", VMS).address == f"unnamed GET {VMS}"


@pytest.mark.parametrize(
    ("method", "query", "nature"),
    [
        ("PATCH", "", Nature.PATCH),
        ("POST", "dryRun=All", Nature.CREATE),
        ("DELETE", "", Nature.DELETE),
        ("PUT", "", Nature.PUT),
        ("GET", "limit=1", Nature.READ),
        ("GET", "watch=1", Nature.WATCH),
    ],
)
def test_the_verb_tells_what_kind_of_request_it_is(method: str, query: str, nature: Nature) -> None:
    assert Asked(method, VMS, query, "x").nature is nature


def test_only_what_changes_something_is_a_write() -> None:
    assert [each for each in Nature if not each.writes] == [Nature.READ, Nature.WATCH, Nature.EVENT]


@pytest.mark.parametrize("path", [CLAIMS, VMS])
def test_what_is_asked_of_all_namespaces_is_asked_of_one(path: str) -> None:
    group, plural = path.rsplit("/", 1)
    assert pinned(path, "lane-1") == f"{group}/namespaces/lane-1/{plural}"


@pytest.mark.parametrize(
    "path",
    ["/api/v1/nodes", LEASE, "/apis", "/apis/bullpen.dev/v1alpha1", f"{VMS}/a", "/apis/apps/v1/deployments"],
)
def test_any_other_path_stays_as_it_is(path: str) -> None:
    assert pinned(path, "lane-1") == path
