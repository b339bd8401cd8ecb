"""A port nobody listens on."""

import socket


def free_port() -> int:
    """A free port of 127.0.0.1, as the kernel gives it out."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
