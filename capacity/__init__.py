"""The warm-capacity engine: how many units to keep ready, and why. Pure: no I/O, no clock of its own.

It knows units (ready, in flight, in use), claims that arrived, lead times, a `WarmCapacity` spec and "now";
never what a unit is. Pools of VMs, tiers and virtual nodes all ask this package.

Terms, as queueing theory and inventory control use them: a claim's *order* is the unit that is made for its
place in the buffer; the *lead time* of an order is from its creation to ready; the *stock position* is
ready + in flight - backorders; the *target* is the order-up-to level S of the stock position.
"""
