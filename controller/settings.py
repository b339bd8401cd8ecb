"""The controller's settings: flags, or environment variables with the prefix BULLPEN_."""

import os
import re
import socket
from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from crds.durations import seconds

SHORTEST_LEASE = 3.0  # s
SHORTEST_SIZING = 1.0  # s
HIGHEST_PORT = 65_535


def _duration(text: str) -> str:
    seconds(text)
    return text


def _lease(text: str) -> str:
    if seconds(text) < SHORTEST_LEASE:
        raise ValueError(f"a lease shorter than {SHORTEST_LEASE:g}s can't be kept: write 15s")
    return text


def _sizing(text: str) -> str:
    if seconds(text) < SHORTEST_SIZING:
        raise ValueError(
            f"a write of each pool's history more often than every {SHORTEST_SIZING:g}s: write 5m"
        )
    return text


def _address(text: str) -> str:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > HIGHEST_PORT:
        raise ValueError("write it as host:port, like 127.0.0.1:8080")
    return f"{host}:{port}"


def _namespaces(text: str) -> str:
    for name in text.split(",") if text.strip() else ():
        if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name.strip()):
            raise ValueError(f"{name.strip()!r} is no name of a namespace: write them like team-a,team-b")
    return text


Length = Annotated[str, AfterValidator(_duration)]


def _identity() -> str:
    return f"{socket.gethostname()}-{os.getpid()}"


class Settings(BaseSettings):
    """Run Bullpen's controller against the cluster of KUBECONFIG, or the one it runs in."""

    model_config = SettingsConfigDict(
        env_prefix="BULLPEN_",
        cli_prog_name="python -m controller",
        cli_kebab_case=True,
        cli_hide_none_type=True,
        cli_implicit_flags=True,
    )

    kubeconfig: str | None = Field(None, description="kubeconfig file; default: $KUBECONFIG, else in-cluster")
    listen: Annotated[str, AfterValidator(_address)] = Field(
        "127.0.0.1:8080", description="address of /metrics, /healthz and /readyz"
    )
    watch_namespaces: Annotated[str, AfterValidator(_namespaces)] = Field(
        "", description="work in these namespaces alone, like team-a,team-b; default: in all of them"
    )
    lease_namespace: str = Field("", description="namespace of the leader's Lease; default: the context's")
    lease_name: str = Field("bullpen-controller", description="name of the leader's Lease")
    lease_duration: Annotated[Length, AfterValidator(_lease)] = Field(
        "15s", description="how long a leader that fell silent is waited for"
    )
    identity: str = Field(default_factory=_identity, description="who holds the Lease")
    max_writes_in_flight: int = Field(32, ge=1, le=1000, description="writes to the API server at once")
    max_hand_overs: int = Field(32, ge=1, le=1000, description="hand-overs under way at once")
    brake_delay: Length = Field("10s", description="pause of the failure brake before its first probe")
    resync_interval: Length = Field(
        "5m",
        description="how often stripped labels, and changed data of templates, are looked for",
    )
    sizing_interval: Annotated[Length, AfterValidator(_sizing)] = Field(
        "5m",
        description="how often each pool's demand is written down and its curve is drawn; webhooks are "
        "asked ten times as often",
    )
    stuck_after: Length = Field(
        "5m", description="how long a VM may be under deletion before its pool says so"
    )
    log_level: str = Field(
        "info", pattern="^(debug|info|warning|error)$", description="debug, info, warning, error"
    )
    log_format: str = Field(
        "auto", pattern="^(auto|json|text)$", description="json, text, auto: text on a terminal"
    )

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Where to work, each once; none stands for everywhere."""
        return tuple(dict.fromkeys(each.strip() for each in self.watch_namespaces.split(",") if each.strip()))
