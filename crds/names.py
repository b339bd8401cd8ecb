"""The names that Bullpen's objects carry: group, plurals, labels, annotations, finalizers.

They are API: objects of the previous release must mean the same under the next one, so nothing
here is ever renamed. This module must never hold behaviour.
"""

from enum import StrEnum

GROUP = "bullpen.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

POOLS = "virtualmachinepools"
POOL_KIND = "VirtualMachinePool"
CLAIMS = "virtualmachineclaims"
CLAIM_KIND = "VirtualMachineClaim"
CATEGORY = "bullpen"

LABEL_STATE = "bullpen.dev/state"
"""What we decided about a VM (a `Mark`), never what was observed. Hand-over compares and sets it."""
LABEL_POOL = "bullpen.dev/pool"
LABEL_POOL_UID = "bullpen.dev/pool-uid"
LABEL_REVISION = "bullpen.dev/revision"
"""The revision of the pool's template that a VM was made from."""
LABEL_CLAIM_UID = "bullpen.dev/claim-uid"
"""The claim that a VM was handed to; set once in a VM's life."""

ANNOTATION_CLAIM = "bullpen.dev/claim"
ANNOTATION_RELEASE_POLICY = "bullpen.dev/release-policy"

FINALIZER_POOL = "bullpen.dev/pool"

HISTORY_PREFIX = "bullpen-history-"
"""A pool's demand is kept in the ConfigMap of this prefix and the pool's name, in the pool's namespace."""
HISTORY_KEY = "history"
"""Its key in `binaryData`: what `capacity.archive` wrote."""
HISTORY_BROKEN_KEY = "broken"
"""What could not be read there, set aside; the newest such alone."""
HISTORY_NOTE_KEY = "note"
"""Its key in `data`: JSON, when the history was written and how long VMs stood idle that day."""

KUBEVIRT_GROUP = "kubevirt.io"
KUBEVIRT_API_VERSION = "kubevirt.io/v1"

MAX_NAME = 63
"""Longest name of a pool or claim in characters: names become label values."""


class Mark(StrEnum):
    """The values of the label `bullpen.dev/state`."""

    POOLED = "Pooled"
    CLAIMED = "Claimed"
    RECYCLING = "Recycling"
    RETAINED = "Retained"
    DRAINING = "Draining"
