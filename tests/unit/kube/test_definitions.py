"""Bullpen's own definitions: waited for, and nothing else is."""

from __future__ import annotations

import asyncio

from controller.kube.definitions import Definitions
from tests.unit.kube.fake_api import Answer, FakeApi, refuses, says, serving


def serves(*plurals: str) -> Answer:
    return says(200, {"kind": "APIResourceList", "resources": [{"name": each} for each in plurals]})


async def waits(*answers: Answer) -> tuple[FakeApi, list[str]]:
    """Wait through these answers; what was said in each pause."""
    said: list[str] = []
    async with serving() as api, api.client() as client:

        async def pause(_: float) -> None:
            said.append(definitions.trouble)
            await asyncio.sleep(0)

        definitions = Definitions(client, "x.dev/v1", ("things", "others"), sleep=pause)
        api.will(*answers)
        async with asyncio.timeout(5):
            await definitions.wait()
        assert definitions.trouble == ""
    return api, said


async def test_it_goes_on_when_all_are_served() -> None:
    api, said = await waits(serves("things", "things/status", "others"))
    assert (said, [each.path for each in api.asked]) == ([], ["/apis/x.dev/v1"])


async def test_it_waits_for_those_that_are_missing_and_says_which_and_what_to_do() -> None:
    gone = refuses(404, "", "404 page not found")
    _, said = await waits(gone, serves("others", "things/status"), serves("things", "others"))
    assert [each.split(":")[0] for each in said] == [
        "the API server serves no things and no others (x.dev/v1)",
        "the API server serves no things (x.dev/v1)",
    ]
    assert "kubectl apply -f crds/manifests" in said[0]


async def test_any_other_trouble_is_not_its_business() -> None:
    for answer in (refuses(403, "Forbidden", "no"), refuses(500, "", "oh"), says(200, ["odd"])):
        _, said = await waits(answer)
        assert said == []
