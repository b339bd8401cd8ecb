from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from crds.generate import MANIFESTS, crd, main, manifest
from crds.kinds import CLAIM, KINDS, POOL, Kind


def schema_of(kind: Kind) -> dict[str, Any]:
    schema: dict[str, Any] = crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def fields(node: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every node of a schema below this one, with its path."""
    for name, child in node.get("properties", {}).items():
        yield f"{path}.{name}", child
        yield from fields(child, f"{path}.{name}")
    for word, sign in (("items", "[]"), ("additionalProperties", "[*]")):
        if word in node:
            yield path + sign, node[word]
            yield from fields(node[word], path + sign)


def test_the_manifests_in_the_repository_are_current() -> None:
    assert main(["--check"]) == 0


def test_a_manifest_that_is_out_of_date_fails_the_check_and_says_what_to_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--directory", str(tmp_path)]) == 0
    assert main(["--directory", str(tmp_path), "--check"]) == 0
    stale = tmp_path / "virtualmachinepools.yaml"
    stale.write_text(stale.read_text().replace("maxLength: 28", "maxLength: 29"))
    assert main(["--directory", str(tmp_path), "--check"]) == 1
    assert "out of date: run python -m crds.generate" in capsys.readouterr().err
    assert "maxLength: 29" in stale.read_text()


def test_a_check_of_a_missing_manifest_fails_and_writes_nothing(tmp_path: Path) -> None:
    assert main(["--directory", str(tmp_path), "--check"]) == 1
    assert list(tmp_path.iterdir()) == []


def test_every_manifest_belongs_to_a_kind() -> None:
    assert {path.stem for path in MANIFESTS.glob("*.yaml")} == {kind.plural for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
class TestEachKind:
    def test_its_yaml_says_what_the_definition_says_without_anchors(self, kind: Kind) -> None:
        text = manifest(kind)
        assert yaml.safe_load(text) == crd(kind)
        assert "&id" not in text

    def test_every_field_has_a_description(self, kind: Kind) -> None:
        for part in ("spec", "status"):
            for path, field in fields(schema_of(kind)["properties"][part]):
                assert path.endswith(("[]", "[*]")) or field.get("description"), path

    def test_every_default_is_told_because_kubectl_explain_shows_descriptions_only(self, kind: Kind) -> None:
        for path, field in fields(schema_of(kind)):
            if field.get("default", {}) != {}:
                default = str(field["default"]).lower() if field["type"] == "boolean" else field["default"]
                told = rf"\(default {default}\)|(^| ){default} \(default\)"
                assert re.search(told, field["description"]), path

    def test_every_description_is_a_sentence(self, kind: Kind) -> None:
        for path, field in fields(schema_of(kind)):
            if description := field.get("description"):
                assert description.endswith("."), path

    def test_status_has_no_default_and_no_rule_that_could_refuse_a_write(self, kind: Kind) -> None:
        for path, field in fields(schema_of(kind)["properties"]["status"]):
            assert "default" not in field, path
            assert "x-kubernetes-validations" not in field, path

    def test_status_is_a_subresource_and_needs_no_field(self, kind: Kind) -> None:
        assert crd(kind)["spec"]["versions"][0]["subresources"]["status"] == {}
        assert "required" not in schema_of(kind)["properties"]["status"]
        assert schema_of(kind)["required"] == ["spec"]

    def test_conditions_are_told_apart_by_type(self, kind: Kind) -> None:
        conditions = schema_of(kind)["properties"]["status"]["properties"]["conditions"]
        assert conditions["x-kubernetes-list-type"] == "map"
        assert conditions["x-kubernetes-list-map-keys"] == ["type"]

    def test_every_column_and_selectable_field_is_in_the_schema(self, kind: Kind) -> None:
        known = {path.replace("[]", "") for path, _ in fields(schema_of(kind))}
        for column in kind.columns:
            path = column.path.split("[?", 1)[0].replace("[0]", "")
            assert path in known | {".metadata.creationTimestamp"}, column.name
        assert set(kind.selectable) <= known

    def test_no_column_shows_a_time_to_come_as_a_date(self, kind: Kind) -> None:
        assert [column.name for column in kind.columns if column.type == "date"] == ["Age"]

    def test_every_rule_prints_a_sentence_of_ours(self, kind: Kind) -> None:
        root = schema_of(kind)
        rules = [rule for _, field in fields(root) for rule in field.get("x-kubernetes-validations", [])]
        assert len(rules) > 5
        for rule in rules + root["x-kubernetes-validations"]:
            assert len(rule["message"]) > 20
            assert "\n" not in rule["message"]


def test_only_fields_that_work_are_in_the_schema() -> None:
    pool = schema_of(POOL)["properties"]["spec"]["properties"]
    claim = schema_of(CLAIM)["properties"]["spec"]["properties"]
    assert set(pool) == {
        "template",
        "warm",
        "limits",
        "readiness",
        "claims",
        "updateStrategy",
        "maxWarmAge",
        "suspend",
    }
    assert set(pool["warm"]["properties"]) == {
        "replicas",
        "percent",
        "max",
        "serviceLevel",
        "schedules",
        "webhook",
        "scaleDown",
        "budget",
    }
    assert set(pool["claims"]["properties"]) == {"order", "lifetime"}
    assert set(claim) == {
        "poolRef",
        "whenEmpty",
        "timeout",
        "lifetime",
        "metadata",
        "ttlSecondsAfterFinished",
    }


def test_scale_moves_the_floor_and_counts_unclaimed_vms() -> None:
    assert crd(POOL)["spec"]["versions"][0]["subresources"]["scale"] == {
        "specReplicasPath": ".spec.warm.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    assert "scale" not in crd(CLAIM)["spec"]["versions"][0]["subresources"]
