"""A Secret or ConfigMap of a template changes after VMs were made from it: the pool says so."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.site import POOLS, Json, Site, condition, guest, holds, until, vm_template

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("controller", "auditor")]

CHANGED = "ReferencedDataChanged"


def data(site: Site, kind: str, name: str, value: str) -> None:
    """Make it, or change what is in it."""
    key = "stringData" if kind == "Secret" else "data"
    path = f"/api/v1/namespaces/{site.namespace}/{kind.lower()}s"
    body = {"kind": kind, "apiVersion": "v1", "metadata": {"name": name}, key: {"userdata": value}}
    answer = site.api.patch(f"{path}/{name}", {key: body[key]})
    if answer.status == 404:
        answer = site.api.post(path, body)
    assert answer.ok, answer.message


def reading(*, init: str = "", config: str = "", **metadata: Any) -> Json:
    """A template that refers to these."""
    volumes = [
        *([{"name": "init", "cloudInitNoCloud": {"secretRef": {"name": init}}}] if init else ()),
        *([{"name": "config", "configMap": {"name": config}}] if config else ()),
    ]
    template = vm_template(guest_spec=guest(volumes=volumes))
    template["metadata"]["annotations"] |= metadata
    return template


def test_a_changed_secret_is_told_until_no_unclaimed_vm_is_older(site: Site) -> None:
    data(site, "Secret", "init", "one")
    site.pool(warm=2, template=reading(init="init"))
    site.until_warm(2)
    site.until_condition(POOLS, "pool", CHANGED, "False", "DataUnchanged")

    data(site, "Secret", "init", "two")
    told = site.until_condition(POOLS, "pool", CHANGED, "True", "DataChanged")
    assert told["message"].startswith("Secret init changed (seen at 20")
    assert "2 unclaimed VMs were made before" in told["message"]
    assert condition(site.get(POOLS, "pool"), "Ready")["status"] == "True"

    site.claim()
    site.bound()
    site.until(
        POOLS, "pool", "one left", lambda pool: "1 unclaimed VM was" in condition(pool, CHANGED)["message"]
    )
    site.patch(POOLS, "pool", {"spec": {"warm": {"replicas": 0}}})
    site.until_condition(POOLS, "pool", CHANGED, "False", "DataUnchanged")


def test_a_roll_out_after_a_change_makes_it_good(site: Site) -> None:
    """The Secret and the template in one go, as `kubectl apply` does: no new VM is taken for an old one."""
    data(site, "Secret", "init", "one")
    pool = site.pool(warm=2, template=reading(init="init"), updateStrategy={"type": "RollingUpdate"})
    site.until_warm(2)
    site.until_condition(POOLS, "pool", CHANGED, "False")
    old = site.vm_names()
    data(site, "Secret", "init", "two")
    template = {"metadata": {"annotations": {"example.com/data": "2"}}}
    site.patch(POOLS, "pool", {"spec": {"template": template}})
    site.until(POOLS, "pool", "noticed", lambda pool: "changedAt" in pool["status"]["referencedData"][0])
    until("all new", site.vm_names, lambda names: len(names) == 2 and not names & old, seconds=60)
    found = site.until_condition(POOLS, "pool", CHANGED, "False", "DataUnchanged")
    assert found["observedGeneration"] == pool["metadata"]["generation"] + 1


def test_what_is_in_a_secret_is_nowhere_to_be_read(site: Site) -> None:
    data(site, "Secret", "init", "hush-hush")
    site.pool(template=reading(init="init"))
    site.until_condition(POOLS, "pool", CHANGED, "False")
    [seen] = site.get(POOLS, "pool")["status"]["referencedData"]
    assert sorted(seen) == ["kind", "name", "resourceVersion", "uid"]
    assert "hush" not in str(site.get(POOLS, "pool"))


def test_a_config_map_that_is_not_there_yet_is_told_and_then_it_is_there(site: Site) -> None:
    site.pool(warm=0, template=reading(config="later"))
    told = site.until_condition(POOLS, "pool", CHANGED, "True", "DataMissing")
    assert told["message"] == "ConfigMap later does not exist: no VM can start until it is there"
    data(site, "ConfigMap", "later", "one")
    site.until_condition(POOLS, "pool", CHANGED, "False", "DataUnchanged")


def test_one_made_anew_under_its_name_counts_as_changed(site: Site) -> None:
    data(site, "ConfigMap", "config", "one")
    site.pool(template=reading(config="config"))
    site.until_warm(1)
    site.until_condition(POOLS, "pool", CHANGED, "False")
    path = f"/api/v1/namespaces/{site.namespace}/configmaps/config"
    assert site.api.delete(path).ok
    site.until_condition(POOLS, "pool", CHANGED, "True", "DataMissing")
    data(site, "ConfigMap", "config", "one")
    site.until_condition(POOLS, "pool", CHANGED, "True", "DataChanged")


def test_a_template_that_refers_to_another_one_is_looked_at_at_once(site: Site) -> None:
    data(site, "Secret", "init", "one")
    site.pool(template=reading(init="init"))
    site.until_warm(1)
    site.until_condition(POOLS, "pool", CHANGED, "False")
    site.patch(POOLS, "pool", {"spec": {"template": reading(init="other")}})
    told = site.until_condition(POOLS, "pool", CHANGED, "True", "DataMissing")
    assert "Secret other" in told["message"]


def test_a_pool_that_refers_to_nothing_has_no_such_condition(site: Site) -> None:
    site.pool()
    site.until_warm(1)
    holds("without it", lambda: condition(site.get(POOLS, "pool"), CHANGED), lambda found: found == {})
