"""An independent watcher: it sees every state that the API server shows and judges the invariants I1 to I5.

It shares no code and no state with the controller or the simulator, so that a mistake there is not also here.
It must never write to the cluster.
"""

from auditor.events import Kind, Rule, Violation
from auditor.watching import Auditor

__all__ = ["Auditor", "Kind", "Rule", "Violation"]
