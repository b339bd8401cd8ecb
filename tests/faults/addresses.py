"""Where a request stands in the protocol: its step's name, and what kind of request it is. Pure.

"The n-th write" is not stable when hand-overs run side by side; "the n-th time of this step" is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from crds.names import POOLS

STEP_HEADER = "X-Bullpen-Step"
_EVERYWHERE = re.compile(r"^/apis/(?P<group>bullpen\.dev|kubevirt\.io)/(?P<version>v\w+)/(?P<plural>\w+)$")
# One name for what is asked of many kinds, or by several verbs: the kind or the verb makes it an address.
_OF_A_KIND = frozenset({"list", "watch", "pools"})


class Nature(StrEnum):
    """What kind of request it is: it decides which faults make sense."""

    PATCH = "patch"
    CREATE = "create"
    DELETE = "delete"
    PUT = "put"
    READ = "read"
    WATCH = "watch"  # the opening of one
    EVENT = "event"  # one line of an open watch

    @property
    def writes(self) -> bool:
        return self in {Nature.PATCH, Nature.CREATE, Nature.DELETE, Nature.PUT}


_BY_METHOD = {
    "PATCH": Nature.PATCH,
    "POST": Nature.CREATE,
    "DELETE": Nature.DELETE,
    "PUT": Nature.PUT,
    "GET": Nature.READ,
}


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, as far as its address depends on it. `step` is empty when it came without a name."""

    method: str
    path: str
    query: str = ""
    step: str = ""

    @property
    def watches(self) -> bool:
        return "watch=1" in self.query or "watch=true" in self.query

    @property
    def nature(self) -> Nature:
        return Nature.WATCH if self.watches else _BY_METHOD[self.method]

    @property
    def plural(self) -> str:
        return self.path.rstrip("/").rsplit("/", 1)[-1]

    @property
    def address(self) -> str:
        """The step's name; with the kind for lists and watches, with read or write for the lease."""
        if not self.step:
            return f"unnamed {self.method} {self.path}"
        if self.step == "lease":
            return "lease/read" if self.method == "GET" else "lease/write"
        if self.step not in _OF_A_KIND:
            return self.step
        if self.watches:
            return f"watch/{self.plural}"
        if self.step == "pools" and self.plural != POOLS:
            return "pools/discovery"
        return f"list/{self.plural}"


def event_address(plural: str) -> str:
    """The address of the lines of a kind's watches."""
    return f"event/{plural}"


def pinned(path: str, namespace: str) -> str:
    """A path for all namespaces as one for this namespace alone: the controller then sees nothing else.

    So that many controllers work side by side on one control plane, each with a world of its own.
    """
    found = _EVERYWHERE.match(path)
    if found is None:
        return path
    return "/apis/{group}/{version}/namespaces/{}/{plural}".format(namespace, **found.groupdict())
