"""Condition types and reasons are API: each is a documented word that the API server lets in."""

from __future__ import annotations

import ast
import itertools
import re
from enum import StrEnum
from pathlib import Path

import pytest

from crds import conditions
from crds.conditions import (
    REASON_PATTERN,
    TYPE_PATTERN,
    ClaimCondition,
    ClaimReason,
    PoolCondition,
    PoolReason,
)

VOCABULARIES = (PoolCondition, PoolReason, ClaimCondition, ClaimReason)


def documented(vocabulary: type[StrEnum]) -> dict[str, str]:
    """The sentence that stands below each constant in the source."""
    tree = ast.parse(Path(str(conditions.__file__)).read_text(encoding="utf-8"))
    body = next(
        node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == vocabulary.__name__
    )
    sentences = {}
    for constant, below in itertools.pairwise(body):
        if (
            isinstance(constant, ast.Assign)
            and isinstance(constant.targets[0], ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
        ):
            sentences[constant.targets[0].id] = str(below.value.value)
    return sentences


@pytest.mark.parametrize("vocabulary", VOCABULARIES, ids=lambda vocabulary: vocabulary.__name__)
def test_every_constant_says_when_it_surfaces(vocabulary: type[StrEnum]) -> None:
    sentences = documented(vocabulary)
    assert set(sentences) == set(vocabulary.__members__)
    for sentence in sentences.values():
        assert re.match(r"Surfaces (when|always)\b.*\.$", sentence, re.DOTALL), sentence


@pytest.mark.parametrize("vocabulary", [PoolReason, ClaimReason], ids=lambda vocabulary: vocabulary.__name__)
def test_every_reason_names_conditions_that_carry_it(vocabulary: type[StrEnum]) -> None:
    types = set(PoolCondition if vocabulary is PoolReason else ClaimCondition)
    for name, sentence in documented(vocabulary).items():
        named = re.search(r"\(([A-Za-z, ]+)\)\.$", sentence)
        assert named, name
        assert set(named[1].split(", ")) <= types, name


@pytest.mark.parametrize("vocabulary", VOCABULARIES, ids=lambda vocabulary: vocabulary.__name__)
def test_a_constants_name_is_its_value_in_capitals(vocabulary: type[StrEnum]) -> None:
    for name, member in vocabulary.__members__.items():
        assert name.replace("_", "").lower() == member.value.lower()


def test_the_api_server_lets_every_word_in() -> None:
    assert all(re.match(TYPE_PATTERN, word) for word in (*PoolCondition, *ClaimCondition))
    assert all(re.match(REASON_PATTERN, word) for word in (*PoolReason, *ClaimReason))


def test_a_finished_claim_is_not_ready_for_the_same_reason() -> None:
    sentences = documented(ClaimReason)
    for reason in ("RELEASED", "EXPIRED", "FAILED", "LOST"):
        assert "(Ready, Finished)" in sentences[reason]
