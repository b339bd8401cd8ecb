"""From a pydantic model to a structural schema as the API server wants it in a CRD.

Everything that the API server would refuse, and everything that would make a rule too costly or leave
`kubectl explain` without words, is refused here first, with the path of the field. This module must
never mend a schema silently: what a model says is what users get.
"""

from collections.abc import Iterator
from typing import Any, Final

from crds.schema import Model

Schema = dict[str, Any]

_INSTEAD: Final = {
    "allOf": "write one model that has all the fields",
    "anyOf": "a field has one type, and an optional one has the default None",
    "const": "use an enum",
    "exclusiveMaximum": "use le",
    "exclusiveMinimum": "use ge",
    "not": "write a CEL rule",
    "oneOf": "a field has one type",
    "patternProperties": "write a CEL rule over the keys",
    "prefixItems": "a list has items of one type",
    "propertyNames": "write a CEL rule over the keys",
    "uniqueItems": "use the list type set",
}
_BOUNDS: Final = {
    "array": ("maxItems",),
    "integer": ("minimum", "maximum"),
    "number": ("minimum", "maximum"),
    "string": ("maxLength",),
}
_WORDS: Final = {
    "additionalProperties", "default", "description", "enum", "format", "items", "maxItems", "maxLength",
    "maxProperties", "maximum", "minItems", "minLength", "minProperties", "minimum", "multipleOf", "pattern",
    "properties", "required", "type",
}  # fmt: skip


class NotStructuralError(ValueError):
    """A model says something that the API server refuses or that our own rules forbid."""

    def __init__(self, path: str, sentence: str) -> None:
        super().__init__(f"{path or 'the root'}: {sentence}")


def structural(model: type[Model], *, without: tuple[str, ...] = ()) -> Schema:
    """Give the structural schema of a model, except for the fields that are left out.

    Raises:
        NotStructuralError: naming the first field that would be refused, and what to write instead.
    """
    written = model.model_json_schema()
    schema = _plain(written, written.get("$defs", {}), "", ())
    for name in without:
        schema["properties"].pop(name, None)
    schema["required"] = [name for name in schema.get("required", []) if name not in without]
    _check(schema, "", described=True)
    return schema


def _plain(node: Schema, definitions: dict[str, Schema], path: str, above: tuple[str, ...]) -> Schema:
    """Put definitions where they are used, and make optional fields simply absent."""
    if "$ref" in node:
        name = node["$ref"].rsplit("/", 1)[-1]
        if name in above:
            raise NotStructuralError(path, f"{name} holds itself: a structural schema can't be recursive")
        siblings = {word: value for word, value in node.items() if word != "$ref"}
        return _plain({**definitions[name], **siblings}, definitions, path, (*above, name))
    if "anyOf" in node:
        siblings = {word: value for word, value in node.items() if word not in {"anyOf", "default"}}
        return _plain({**_the_one_beside_null(node, path), **siblings}, definitions, path, above)
    plain = {word: value for word, value in node.items() if word not in {"$defs", "title"}}
    _tidy_default(plain, path)
    if "properties" in node:
        plain["properties"] = {
            name: _plain(child, definitions, f"{path}.{name}", above)
            for name, child in node["properties"].items()
        }
    if "items" in node:
        plain["items"] = _plain(node["items"], definitions, f"{path}[]", above)
    if isinstance(node.get("additionalProperties"), dict):
        plain["additionalProperties"] = _plain(node["additionalProperties"], definitions, f"{path}[*]", above)
    elif node.get("x-kubernetes-preserve-unknown-fields"):
        plain.pop("additionalProperties", None)
    return plain


def _the_one_beside_null(node: Schema, path: str) -> Schema:
    others = [choice for choice in node["anyOf"] if choice != {"type": "null"}]
    if len(others) != 1 or node.get("default", "none") is not None:
        raise NotStructuralError(path, f"anyOf is refused: {_INSTEAD['anyOf']}")
    return dict(others[0])


def _tidy_default(node: Schema, path: str) -> None:
    # The fields of an object have defaults of their own. An empty list written out would be a difference for
    # GitOps tools. In a status stands what was found, so the models' defaults are for Python alone.
    if "default" not in node:
        return
    if path.startswith(".status") or node["default"] in (None, []):
        del node["default"]
    elif isinstance(node["default"], dict):
        node["default"] = {}


def _check(node: Schema, path: str, *, described: bool, may_default: bool = True) -> None:
    _check_words(node, path)
    if described and not node.get("description"):
        raise NotStructuralError(path, "has no description, which kubectl explain would show")
    if "default" in node and not may_default:
        raise NotStructuralError(path, "has a default, but a list's items and a map's values have none")
    _check_bounds(node, path)
    for child, below, kind in _children(node, path):
        is_property = kind == "property"
        _check(child, below, described=is_property, may_default=may_default and is_property)


def _check_words(node: Schema, path: str) -> None:
    for word in node:
        if word not in _WORDS and not word.startswith("x-kubernetes-"):
            raise NotStructuralError(
                path, f"{word} is refused: {_INSTEAD.get(word, 'no structural schema has it')}"
            )
    if not isinstance(node.get("type"), str):
        raise NotStructuralError(path, "has no type, or more than one")
    if isinstance(node.get("additionalProperties"), bool):
        raise NotStructuralError(
            path, "additionalProperties is refused: name the type of the values, or preserve unknown fields"
        )


def _check_bounds(node: Schema, path: str) -> None:
    needed = _BOUNDS.get(node["type"], ())
    if "enum" in node or node.get("format") == "date-time":
        needed = ()
    if "additionalProperties" in node:
        needed = ("maxProperties",)
    for bound in needed:
        if bound not in node:
            raise NotStructuralError(path, f"has no {bound}: the cost of rules is reckoned with it")
    if node["type"] == "array" and "x-kubernetes-list-type" not in node:
        raise NotStructuralError(path, "has no list type: server-side apply needs atomic, set or map")


def _children(node: Schema, path: str) -> Iterator[tuple[Schema, str, str]]:
    for name, child in node.get("properties", {}).items():
        yield child, f"{path}.{name}", "property"
    if "items" in node:
        yield node["items"], f"{path}[]", "item"
    if "additionalProperties" in node:
        yield node["additionalProperties"], f"{path}[*]", "value"
