"""Which pool is meant, and every way in which it or its history can't be had."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import orjson
import pytest
import typer
import yaml

from capacity import archive
from capacity.history import History
from cli import pools, trouble
from crds.names import HISTORY_KEY, HISTORY_NOTE_KEY, LABEL_POOL
from tests.support.manifests import pool_manifest
from tests.unit.cli.running import Answer, kubeconfig, run, serving

Json = dict[str, Any]
POOLS = "/apis/bullpen.dev/v1alpha1/namespaces/mine/virtualmachinepools"
CONFIGMAP = "/api/v1/namespaces/mine/configmaps/bullpen-history-runners"
POOL: Answer = (200, pool_manifest("runners"))
SINCE = 1_772_409_600.0


def stored(**data: str) -> Answer:
    meta = {"name": "bullpen-history-runners", "labels": {LABEL_POOL: "runners"}}
    return 200, {"metadata": meta, "binaryData": data}


def explained(tmp_path: Path, answers: dict[str, Answer], *options: str) -> tuple[int, str, str]:
    with serving(answers) as server:
        return run("explain", "wp/runners", *options, "--kubeconfig", kubeconfig(tmp_path, server))


# ---- which one


@pytest.mark.parametrize(
    "kind",
    [
        "wp", "warmpool", "virtualmachinepool", "virtualmachinepools", "WP", "VirtualMachinePool",
        "virtualmachinepools.bullpen.dev", "virtualmachinepools.v1alpha1.bullpen.dev",
    ],
)  # fmt: skip
def test_a_pool_is_named_as_kubectl_names_it(kind: str) -> None:
    assert pools.named([f"{kind}/runners"]) == "runners"
    assert pools.named([kind, "runners"]) == "runners"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["runners"], "'runners' is no pool: write wp/runners"),
        (["pod/runners"], "'pod' is no pool: write wp/NAME"),
        (["vmc", "job-1"], "vmc is a claim: name its pool, as in wp/NAME"),
        (["vmclaim/job-1"], "vmclaim is a claim: name its pool"),
        (["wp/"], "names no pool"),
        (["wp/a/b"], "names no pool"),
        (["wp", "a", "b"], "is not one pool"),
        (["wp/a", "wp/b"], "is not one pool"),
    ],
)  # fmt: skip
def test_what_is_no_pool_is_told_what_to_write(words: list[str], said: str) -> None:
    with pytest.raises(typer.BadParameter) as caught:
        pools.named(words)
    assert said in str(caught.value)


def test_a_wrong_name_is_a_wrong_option(tmp_path: Path) -> None:
    code, out, error = run("explain", "runners", "--kubeconfig", tmp_path / "none")
    assert (code, out) == (2, "")
    assert "write wp/runners" in error


# ---- the pool


def test_a_pool_and_its_history_are_explained(tmp_path: Path) -> None:
    history = base64.b64encode(archive.encode(History(SINCE))).decode()
    answers = {f"{POOLS}/runners": POOL, CONFIGMAP: stored(**{HISTORY_KEY: history})}
    code, out, error = explained(tmp_path, answers)
    assert (code, error) == (0, "")
    assert out.startswith("wp/runners in namespace mine has no size yet")


@pytest.mark.parametrize(("form", "parse"), [("json", orjson.loads), ("yaml", yaml.safe_load)])
def test_programs_get_one_document(tmp_path: Path, form: str, parse: Any) -> None:
    code, out, _ = explained(tmp_path, {f"{POOLS}/runners": POOL}, "-o", form)
    assert code == 0
    document = parse(out)
    assert (document["pool"], document["namespace"]) == ("runners", "mine")
    assert document["history"]["missing"].startswith("no claims were recorded for pool runners yet")


def test_another_namespace_may_be_named(tmp_path: Path) -> None:
    answers = {f"{POOLS.replace('mine', 'theirs')}/runners": POOL}
    code, out, _ = explained(tmp_path, answers, "-n", "theirs")
    assert code == 0
    assert "in namespace theirs" in out


NOT_FOUND: Answer = (404, {"message": 'virtualmachinepools.bullpen.dev "runners" not found'})


def listed(*names: str) -> Answer:
    items = [{"metadata": {"name": name}} for name in names]
    return 200, {"metadata": {"resourceVersion": "1"}, "items": items}


@pytest.mark.parametrize(
    ("others", "said"),
    [
        (listed("b", "a"), "there is no pool runners in namespace mine; there is a, b"),
        (listed(*"gfedcba"), "there is a, b, c, d, e and 2 more"),
        (listed(), "there is none at all: name its namespace with -n"),
        ((403, {"message": "no"}), "name another with wp/NAME, or its namespace with -n"),
    ],
)
def test_a_pool_that_is_not_there_is_told_beside_those_that_are(
    tmp_path: Path, others: Answer, said: str
) -> None:
    code, out, error = explained(tmp_path, {f"{POOLS}/runners": NOT_FOUND, POOLS: others})
    assert (code, out) == (trouble.COULD_NOT_LOOK, "")
    assert said in error
    assert error.count("\n") == 1


def test_definitions_that_are_not_installed_are_no_missing_pool(tmp_path: Path) -> None:
    code, _, error = explained(tmp_path, {})
    assert code == trouble.COULD_NOT_LOOK
    assert "are Bullpen's definitions" in error


FORBIDDEN: Answer = (403, {"message": 'cannot get resource in the namespace "mine"'})


def test_a_right_that_is_missing_is_named(tmp_path: Path) -> None:
    code, _, error = explained(tmp_path, {f"{POOLS}/runners": FORBIDDEN})
    assert code == trouble.COULD_NOT_LOOK
    assert "the right to get virtualmachinepools.bullpen.dev is missing" in error
    assert "docs/backtest.md has a Role" in error


def test_a_pool_of_a_schema_that_is_not_known_is_told(tmp_path: Path) -> None:
    broken = (200, pool_manifest("runners", warm={"replicas": "many"}))
    code, _, error = explained(tmp_path, {f"{POOLS}/runners": broken})
    assert code == trouble.COULD_NOT_LOOK
    assert "wp/runners can't be read: spec.warm.replicas" in error


# ---- its history


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((404, {"message": 'configmaps "x" not found'}), "no claims were recorded for pool runners yet"),
        (FORBIDDEN, "the right to get configmaps is missing"),
        (stored(other="eA=="), "holds no history"),
        ((200, {"metadata": {"name": "x"}, "data": {"a": "b"}}), "is not Bullpen's"),
        (stored(**{HISTORY_KEY: "no base64!"}), "can't be read"),
        (stored(**{HISTORY_KEY: "bm90IGEgaGlzdG9yeQ=="}), "can't be read"),
    ],
    ids=["none", "forbidden", "another key", "a person's", "no base64", "garbage"],
)
def test_a_pool_is_explained_without_its_history_and_says_why(
    tmp_path: Path, answer: Answer, said: str
) -> None:
    code, out, error = explained(tmp_path, {f"{POOLS}/runners": POOL, CONFIGMAP: answer})
    assert (code, error) == (0, "")
    assert said in " ".join(out.split())


@pytest.mark.parametrize(
    ("note", "until"),
    [
        ('{"writtenAt": 1772500000.5, "idle": []}', 1_772_500_000.5),
        (None, None),
        ("", None),
        ("{}", None),
        ('{"writtenAt": "soon"}', None),
        ("[]", None),
    ],
)
def test_a_note_beside_the_history_may_say_when_it_was_written(note: str | None, until: float | None) -> None:
    _, configmap = stored(**{HISTORY_KEY: base64.b64encode(archive.encode(History(SINCE))).decode()})
    data = {} if note is None else {HISTORY_NOTE_KEY: note}
    found = pools.decoded({**configmap, "data": data}, "bullpen-history-runners")
    assert found.history is not None
    assert found.until == until


def test_an_error_that_says_nothing_of_the_history_is_not_taken_for_none(tmp_path: Path) -> None:
    answers = {f"{POOLS}/runners": POOL, CONFIGMAP: (500, {"message": "etcd is away"})}
    code, _, error = explained(tmp_path, answers)
    assert code == trouble.COULD_NOT_LOOK
    assert "etcd is away" in error
