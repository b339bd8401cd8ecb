"""Labels and annotations that users give to VMs, and which keys they may use.

This module must never list the keys that Bullpen sets itself: those stand in `names`.
"""

from typing import Annotated, Final

from pydantic import Field

from crds.schema import Rule, rules

MAX_KEYS: Final = 32
RESERVED_DOMAINS: Final = ("bullpen.dev", "kubevirt.io", "kubernetes.io", "k8s.io")
LABEL_VALUE: Final = "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"
KEY: Final = (
    "^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
)

_ALTERNATIVES = "|".join(domain.replace(".", "[.]") for domain in RESERVED_DOMAINS)

_KEYS = Rule(
    f"self.all(key, key.matches('{KEY}'))",
    "a key is a word of at most 63 letters, digits, dots, dashes or underscores, which may follow a domain "
    "in small letters: team or example.com/team",
)
_NOT_RESERVED = Rule(
    f"self.all(key, !key.matches('^([^/]*[.])?({_ALTERNATIVES})/'))",
    "keys under bullpen.dev/, kubevirt.io/, kubernetes.io/ and k8s.io/ (and their subdomains) are reserved: "
    "use a domain of your own, like example.com/team",
)
_NOT_OURS = Rule(
    "self.all(key, !key.startsWith('bullpen.dev/'))",
    "keys under bullpen.dev/ are Bullpen's own: use a domain of your own, like example.com/team",
)
_VALUES = Rule(
    f"self.all(key, self[key].matches('{LABEL_VALUE}'))",
    "the value of a label has only letters, digits, dots, dashes and underscores, and begins and ends with "
    "a letter or digit: put anything else into annotations",
)

LabelValue = Annotated[str, Field(max_length=63)]
# All of a VM's annotations together may have 256 kB; these leave half of it to others.
AnnotationValue = Annotated[str, Field(max_length=4096)]

ClaimLabels = Annotated[
    dict[str, LabelValue],
    Field(max_length=MAX_KEYS, json_schema_extra=rules(_KEYS, _NOT_RESERVED, _VALUES)),
]
ClaimAnnotations = Annotated[
    dict[str, AnnotationValue], Field(max_length=MAX_KEYS, json_schema_extra=rules(_KEYS, _NOT_RESERVED))
]
TemplateLabels = Annotated[
    dict[str, LabelValue], Field(max_length=MAX_KEYS, json_schema_extra=rules(_KEYS, _NOT_OURS, _VALUES))
]
TemplateAnnotations = Annotated[
    dict[str, AnnotationValue], Field(max_length=MAX_KEYS, json_schema_extra=rules(_KEYS, _NOT_OURS))
]
