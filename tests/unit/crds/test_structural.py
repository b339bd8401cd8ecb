"""Each construct that the API server refuses, or that we do, is refused by the generator with its path."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import ConfigDict, Field

from crds.schema import ATOMIC, PRESERVE_UNKNOWN, Message, Model
from crds.structural import NotStructuralError, structural

Word = Annotated[str, Field(max_length=10)]
Words = Annotated[tuple[Word, ...], Field(max_length=3, json_schema_extra=ATOMIC)]


class Fine(Model):
    """Holds nothing that is refused."""

    name: Word = Field(description="A name.")


class Recursive(Model):
    """Holds itself."""

    inner: Recursive | None = Field(default=None, description="Another one.")


class Closed(Model):
    """Forbids unknown fields, which a CRD can't say."""

    model_config = ConfigDict(extra="forbid")


class Item(Model):
    """Has a default in a list."""

    size: int = Field(default=1, ge=0, le=9, description="A size.")


class Unbounded(Model):
    """Has a string of any length."""

    name: str = Field(description="A name.")


class Described(Model):
    """A model whose description serves the field that has none of its own."""

    name: Word = Field(description="A name.")


def one_field(annotation: Any, **field: Any) -> type[Model]:
    """A model with one field of this type."""
    namespace = {
        "__module__": __name__,
        "__doc__": "A case.",
        "__annotations__": {"field": annotation},
        "field": Field(**{"description": "A field.", **field}),
    }
    return type("Case", (Model,), namespace)


@pytest.mark.parametrize(
    ("annotation", "sentence"),
    [
        (int | Word, "anyOf is refused: a field has one type"),
        (Word | None, "anyOf is refused: a field has one type, and an optional one has the default None"),
        (Annotated[int, Field(gt=0, le=5)], "exclusiveMinimum is refused: use ge"),
        (Annotated[int, Field(ge=0, lt=5)], "exclusiveMaximum is refused: use le"),
        (Annotated[Literal["x"], Field(max_length=3)], "const is refused: use an enum"),
        (tuple[Word, Word], "prefixItems is refused: a list has items of one type"),
        (set[Word], "uniqueItems is refused: use the list type set"),
        (frozenset[Word], "uniqueItems is refused: use the list type set"),
        (dict[Annotated[str, Field(pattern="^a")], Word], "patternProperties is refused: write a CEL rule"),
        (dict[Annotated[str, Field(max_length=3)], Word], "propertyNames is refused: write a CEL rule"),
        (Annotated[Word, Field(json_schema_extra={"allOf": []})], "allOf is refused: write one model"),
        (Annotated[Word, Field(json_schema_extra={"oneOf": []})], "oneOf is refused: a field has one type"),
        (Annotated[Word, Field(json_schema_extra={"not": {}})], "not is refused: write a CEL rule"),
        (Annotated[Word, Field(examples=["x"])], "examples is refused: no structural schema has it"),
        (Any, "has no type, or more than one"),
        (Closed, "additionalProperties is refused: name the type of the values"),
        (dict[str, Any], "additionalProperties is refused: name the type of the values"),
        (str, "has no maxLength"),
        (int, "has no minimum"),
        (Annotated[int, Field(ge=0)], "has no maximum"),
        (float, "has no minimum"),
        (Annotated[tuple[Word, ...], Field(json_schema_extra=ATOMIC)], "has no maxItems"),
        (Annotated[tuple[Word, ...], Field(max_length=3)], "has no list type"),
        (dict[str, Word], "has no maxProperties"),
    ],
)
def test_a_construct_that_no_crd_may_have_is_refused_with_its_path(annotation: Any, sentence: str) -> None:
    with pytest.raises(NotStructuralError) as refusal:
        structural(one_field(annotation))
    assert str(refusal.value).startswith(f".field: {sentence}")


def test_what_is_deep_inside_is_found_too_and_named() -> None:
    items = Annotated[tuple[Unbounded, ...], Field(max_length=2, json_schema_extra=ATOMIC)]
    with pytest.raises(NotStructuralError, match=r"^\.field\[\]\.name: has no maxLength"):
        structural(one_field(items))
    values = Annotated[dict[str, str], Field(max_length=2)]
    with pytest.raises(NotStructuralError, match=r"^\.field\[\*\]: has no maxLength"):
        structural(one_field(values))


def test_a_model_that_holds_itself_is_refused() -> None:
    with pytest.raises(
        NotStructuralError, match=r"Recursive holds itself: a structural schema can't be recursive"
    ):
        structural(Recursive)


def test_a_field_without_description_is_refused() -> None:
    with pytest.raises(NotStructuralError, match=r"^\.field: has no description"):
        structural(one_field(Word, description=None))


def test_a_default_in_a_lists_item_is_refused_because_gitops_tools_would_see_a_difference() -> None:
    items = Annotated[tuple[Item, ...], Field(max_length=2, json_schema_extra=ATOMIC)]
    with pytest.raises(NotStructuralError, match=r"^\.field\[\]\.size: has a default"):
        structural(one_field(items))


def test_an_optional_field_is_simply_absent() -> None:
    schema = structural(one_field(Word | None, default=None))
    assert schema["properties"]["field"] == {"type": "string", "maxLength": 10, "description": "A field."}
    assert "required" not in schema or schema["required"] == []


def test_a_model_in_a_field_stands_there_whole_with_the_fields_own_description() -> None:
    schema = structural(one_field(Described))
    assert schema["properties"]["field"]["description"] == "A field."
    assert schema["properties"]["field"]["properties"]["name"]["maxLength"] == 10
    assert "$ref" not in str(schema)
    assert "$defs" not in schema
    assert "title" not in str(schema)


def test_an_object_defaults_to_empty_and_its_fields_to_theirs() -> None:
    schema = structural(one_field(Item, default=Item()))
    assert schema["properties"]["field"]["default"] == {}
    assert schema["properties"]["field"]["properties"]["size"]["default"] == 1


def test_an_empty_list_is_no_default() -> None:
    assert "default" not in structural(one_field(Words, default=()))["properties"]["field"]


def test_what_may_hold_anything_says_so_by_the_word_that_crds_have_for_it() -> None:
    anything = Annotated[dict[str, Any], Field(json_schema_extra=PRESERVE_UNKNOWN)]
    field = structural(one_field(anything))["properties"]["field"]
    assert field == {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "description": "A field.",
    }


def test_a_status_has_no_defaults_because_it_says_what_was_found() -> None:
    class Whole(Model):
        """Has a status."""

        status: Item = Field(default=Item(), description="What was found.")

    assert "default" not in str(structural(Whole)["properties"]["status"])


def test_fields_can_be_left_out() -> None:
    class Whole(Model):
        """Has two fields."""

        mine: Word = Field(description="Mine.")
        theirs: Any = None
        needed: Any

    schema = structural(Whole, without=("theirs", "needed"))
    assert list(schema["properties"]) == ["mine"]
    assert schema["required"] == ["mine"]


def test_a_model_with_nothing_wrong_is_let_through() -> None:
    assert structural(Fine)["properties"]["name"]["type"] == "string"
    assert structural(one_field(Message))["properties"]["field"]["maxLength"] == 4096
