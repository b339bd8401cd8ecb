"""A proxy between the controller and the real API server that goes wrong at a chosen step, for the n-th time.

Small in `make test`, whole by `make faults`. What each scenario does, which faults make sense where, and what
must be so afterwards is data and pure functions; the proxy and the lanes only carry it out.
"""
