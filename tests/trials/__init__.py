"""Trials of the hand-over under load and death: bursts, kills, frozen leaders, outages, chaos.

The same code runs small in the test suite and full size for the record (`python -m tests.trials`).
It judges by what the API server shows: the auditor, the order of its watch, and the count of VMs at rest.
It must never look into the controller to find it innocent.
"""
