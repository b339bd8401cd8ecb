"""The order-up-to rule, in one place: how many units are missing. It must never know what bounds a creation.

Units to create = max(0, target + backorders - (ready + in flight)). A backorder is a waiting claim's unit and
is placed when the claim arrives: a buffer that is refilled only when something is taken out never recovers
once demand times lead time exceeds it. (Order-up-to, or base-stock: Zipkin, Foundations of Inventory
Management, 2000, chapter 6.)
"""

from capacity.decision import Stock


def missing(target: int, stock: Stock) -> int:
    """Units that are missing (positive) or more than wanted (negative)."""
    return target + stock.backorders - (stock.ready + stock.in_flight)
