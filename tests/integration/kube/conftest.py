from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from controller.kube.client import ApiClient
from controller.kube.config import load_config


@pytest.fixture
async def client(kubeconfig: Path) -> AsyncIterator[ApiClient]:
    async with ApiClient(load_config(str(kubeconfig)), timeout=10.0) as made:
        yield made


@pytest.fixture
def maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"
