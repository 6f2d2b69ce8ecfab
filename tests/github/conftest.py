"""The ways to the hub: called directly, by HTTP, and by HTTP through Prism, which knows GitHub's own description."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from github.scene import Scene, Switch
from github.server import served


@pytest.fixture(scope="session")
def switch() -> Switch:
    return Switch()


@pytest.fixture(scope="session")
def hub_url(switch: Switch) -> Iterator[str]:
    with served(switch) as url:
        yield url


@pytest.fixture(scope="session")
def prism_url(hub_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    from github.prism import cut_description, prism

    folder: Path = tmp_path_factory.mktemp("prism")
    with prism(cut_description(folder), hub_url, folder) as url:
        yield url


@pytest.fixture
def way(request: pytest.FixtureRequest) -> str:
    return str(getattr(request, "param", "direct"))


@pytest.fixture
def scene(way: str, switch: Switch, request: pytest.FixtureRequest) -> Iterator[Scene]:
    """A repository that no other test sees, reached in the way that the test names."""
    url = "" if way == "direct" else request.getfixturevalue({"http": "hub_url", "prism": "prism_url"}[way])
    made = Scene(url=url)
    switch.api = made.api
    made.api.link_url = url or made.api.link_url
    yield made
    for client in made.clients:
        client.disconnect()
    assert made.violations == []
