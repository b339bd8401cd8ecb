"""A port nobody listens on."""

import random
import socket

_PORTS = range(12_000, 20_000)  # where neither the kernel looks for one, nor a control plane
_given: set[int] = set()


def free_port() -> int:
    """A free port of 127.0.0.1, given to nobody else here: whoever asked may bind it seconds later."""
    for port in random.sample(_PORTS, len(_PORTS)):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in _given:
            _given.add(port)
            return port
    raise OSError(f"no port of {_PORTS} is free on 127.0.0.1")
