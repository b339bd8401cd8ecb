"""Labels and annotations that users give to VMs, and which keys they may use.

This module must never list the keys that Bullpen sets itself: those stand in `names`.
"""

from typing import Annotated, Final

from pydantic import Field

from crds.schema import Rule, rules

MAX_LABELS: Final = 32
MAX_ANNOTATIONS: Final = 32
RESERVED_DOMAINS: Final = ("bullpen.dev", "kubevirt.io", "kubernetes.io", "k8s.io")
LABEL_VALUE: Final = "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"

_ALTERNATIVES = "|".join(domain.replace(".", "[.]") for domain in RESERVED_DOMAINS)

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
    "a label's value is at most 63 letters, digits, dots, dashes or underscores, and begins and ends with "
    "a letter or digit: put anything else into annotations",
)

LabelValue = Annotated[str, Field(max_length=63)]
AnnotationValue = Annotated[str, Field(max_length=8192)]

ClaimLabels = Annotated[
    dict[str, LabelValue], Field(max_length=MAX_LABELS, json_schema_extra=rules(_NOT_RESERVED, _VALUES))
]
ClaimAnnotations = Annotated[
    dict[str, AnnotationValue], Field(max_length=MAX_ANNOTATIONS, json_schema_extra=rules(_NOT_RESERVED))
]
TemplateLabels = Annotated[
    dict[str, LabelValue], Field(max_length=MAX_LABELS, json_schema_extra=rules(_NOT_OURS, _VALUES))
]
TemplateAnnotations = Annotated[
    dict[str, AnnotationValue], Field(max_length=MAX_ANNOTATIONS, json_schema_extra=rules(_NOT_OURS))
]
