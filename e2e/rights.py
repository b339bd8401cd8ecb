"""What a role grants and what was asked for, in the same words, so that the two can be compared.

Pure: rendered manifests and lines of an audit log in, sets out. It must never be kinder than Kubernetes'
own authorizer: a wildcard is refused, and a request that it can't read is an error.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

Json = dict[str, Any]
EVERYWHERE = "*"


class Request(NamedTuple):
    """One kind of request; `resource` is `group/plural` or `group/plural/subresource`, or a bare URL path."""

    verb: str
    resource: str
    namespace: str = ""
    name: str = ""


class Right(NamedTuple):
    """One verb on one resource; in one namespace or everywhere, on one object or all."""

    verb: str
    resource: str
    namespace: str = EVERYWHERE
    name: str = ""

    def covers(self, request: Request) -> bool:
        return (
            (self.verb, self.resource) == (request.verb, request.resource)
            and self.namespace in {EVERYWHERE, request.namespace}
            and self.name in {"", request.name}
        )

    def __str__(self) -> str:
        where = "" if self.namespace == EVERYWHERE else f" in {self.namespace}"
        return f"{self.verb} {self.resource}{' ' if self.name else ''}{self.name}{where}"


def of_rules(rules: Iterable[Json], namespace: str = EVERYWHERE) -> Iterator[Right]:
    """Each right of a role's rules. ValueError for a wildcard."""
    for rule in rules:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    if "*" in f"{group}{resource}{verb}":
                        raise ValueError(f"a wildcard: {rule}")
                    for name in rule.get("resourceNames", [""]):
                        yield Right(verb, f"{group}/{resource}", namespace, name)


def granted(manifests: Iterable[Json], account: str) -> set[Right]:
    """The rights of an account (`namespace:name`) by the roles among these manifests that are bound to it."""
    objects = list(manifests)
    roles = {
        (each["kind"], each["metadata"]["name"], each["metadata"].get("namespace")): each["rules"]
        for each in objects
        if each["kind"] in {"Role", "ClusterRole"}
    }
    found: set[Right] = set()
    for each in objects:
        if not each["kind"].endswith("RoleBinding"):
            continue
        subjects = {f"{one.get('namespace')}:{one['name']}" for one in each["subjects"]}
        if account not in subjects:
            continue
        namespace = each["metadata"].get("namespace")
        kind, name = each["roleRef"]["kind"], each["roleRef"]["name"]
        rules = roles[kind, name, namespace if kind == "Role" else None]
        found |= set(of_rules(rules, namespace or EVERYWHERE))
    return found


class Recorded(NamedTuple):
    """One request of an audit log; `allowed` is the authorizer's word, whatever became of it afterwards."""

    request: Request
    allowed: bool


def recorded(lines: Iterable[str], user: str) -> Iterator[Recorded]:
    """What a user asked for, by the lines of an audit log."""
    for line in lines:
        event = json.loads(line)
        if event["user"]["username"] != user:
            continue
        yield Recorded(_request(event), event["annotations"]["authorization.k8s.io/decision"] == "allow")


def _request(event: Json) -> Request:
    about = event.get("objectRef")
    if about is None:
        return Request(event["verb"], event["requestURI"].partition("?")[0])
    resource = "/".join(
        filter(None, (about["resource"], about.get("subresource"))),
    )
    return Request(
        event["verb"],
        f"{about.get('apiGroup', '')}/{resource}",
        about.get("namespace", ""),
        about.get("name", ""),
    )
