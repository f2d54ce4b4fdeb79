"""Services that the stories share. Stories that end a worker start services of their own."""

import os
import pathlib
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import chorus
import members
from chorus.native.library import Library, load
from members import Pair
from services import Fleet, program


def pytest_sessionstart() -> None:
    if not program("chorus-worker").exists():
        pytest.exit(f"{program('chorus-worker')} is not built; CHORUS_BINARIES says where programs are", returncode=77)


@pytest.fixture(scope="session")
def fleet() -> Iterator[Fleet]:
    """A coordinator and workers a and b, with group `all`."""
    with Fleet() as fleet:
        yield fleet


@pytest.fixture
def client(fleet: Fleet) -> chorus.Client:
    return fleet.client


@pytest.fixture
def a(client: chorus.Client) -> chorus.RemoteWorker:
    return client.worker("a")


@pytest.fixture
def b(client: chorus.Client) -> chorus.RemoteWorker:
    return client.worker("b")


@pytest.fixture(scope="session")
def library() -> Library:
    """libchorus.so.0 of the build, which CHORUS_LIBRARY names from now on, as CHORUS_BIN does the programs."""
    members.require_library()
    os.environ["CHORUS_LIBRARY"] = str(members.library())
    os.environ["CHORUS_BIN"] = str(program("chorus-worker").parent)
    return load()


@pytest.fixture(scope="session")
def bare() -> Iterator[Fleet]:
    """A coordinator, for workers of the stories' own processes."""
    with Fleet(workers=()) as fleet:
        yield fleet


@pytest.fixture(scope="session")
def shared_pair(library: Library, bare: Fleet) -> Iterator[Pair]:
    pair = Pair(bare.client, "pair")
    yield pair
    pair.close()


@pytest.fixture
def pair(shared_pair: Pair) -> Pair:
    """Two workers of this process in one group, for stories that end no epoch."""
    return shared_pair


@pytest.fixture
def own_pair(library: Library, bare: Fleet, request: pytest.FixtureRequest) -> Iterator[Pair]:
    """Two workers of this process for a story that breaks their group."""
    pair = Pair(bare.client, f"own-{zlib.crc32(request.node.name.encode()):08x}")
    yield pair
    pair.close()


@pytest.fixture(scope="session")
def extension(library: Library) -> None:
    """The extension for torch.distributed, compiled."""
    from chorus.torch import build

    build.build()


@pytest.fixture
def ranks(extension: None, tmp_path: pathlib.Path) -> Callable[..., list[Any]]:
    """Calls a story on so many ranks of torch.distributed."""
    import torch_ranks

    def run(size: int, story: Callable[..., Any], *args: Any, **options: Any) -> list[Any]:
        return torch_ranks.run(size, story, str(tmp_path), *args, **options)

    return run
