"""The life of a VM and of a claim, as data.

Every table here says which moves exist and why; the machines, the checks and the reference page all
come from it. Nothing in this package imports anything else of ours, does I/O or reads a
clock.
"""
