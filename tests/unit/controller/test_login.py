"""kopf enters the cluster where the rest of the controller does, with the same trust and a fresh token."""

from __future__ import annotations

import ssl

from controller.handlers import connection
from controller.kube.config import Authorization, ClusterConfig


async def test_kopf_gets_the_server_the_trust_and_the_token_of_the_controller() -> None:
    context = ssl.create_default_context()
    config = ClusterConfig(
        "https://cluster.example", ssl=context, authorization=Authorization(lambda: "Bearer secret")
    )
    found = await connection(config)
    assert found.server == "https://cluster.example"
    assert found.as_ssl_context() is context
    assert found.as_http_headers()["Authorization"] == "Bearer secret"


async def test_a_refused_token_is_read_again() -> None:
    tokens = iter(["Bearer old", "Bearer new", "Bearer newer"])
    config = ClusterConfig("https://cluster.example", authorization=Authorization(lambda: next(tokens)))
    assert [(await connection(config)).token for _ in range(2)] == ["new", "newer"]


async def test_a_cluster_that_is_entered_by_certificate_gets_no_token() -> None:
    context = ssl.create_default_context()
    found = await connection(ClusterConfig("https://cluster.example", ssl=context))
    assert "Authorization" not in found.as_http_headers()
    assert found.as_ssl_context() is context


async def test_kopfs_requests_carry_a_steps_name_like_all_others() -> None:
    found = await connection(ClusterConfig("https://cluster.example"))
    assert found.as_http_headers()["X-Bullpen-Step"] == "pools"
