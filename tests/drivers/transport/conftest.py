"""Both ends of a connection, open."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from cosim.core.errors import SourceLocation
from cosim.plugins.drivers.transport import (
    BaseConnection,
    CanParams,
    ConnectionLost,
    SerialParams,
    bus_lock,
    device_link,
    host_link,
    now,
)

SOON = 30_000_000_000  # ns in which anything that comes at all has come, also on a machine that stalls


def place(*keys: str) -> SourceLocation:
    return SourceLocation("rig.yaml", 7, ".".join(keys))


def lost(action: Callable[..., object], *arguments: object) -> str:
    """Why the connection cannot do this."""
    with pytest.raises(ConnectionLost) as caught:
        action(*arguments)
    return str(caught.value)


def assert_patient(link: BaseConnection) -> None:
    """Without anything to receive, it waits for the deadline, and not for one in the past."""
    due = now() + 10_000_000
    assert link.receive(due) is None and now() >= due - 1_000_000
    assert link.receive(0) is None


@contextmanager
def soon(action: Callable[[], object]) -> Iterator[None]:
    """In another thread, while this one waits."""
    timer = threading.Timer(0.02, action)
    timer.start()
    yield
    timer.join()


Params = CanParams | SerialParams
Ends = tuple[BaseConnection, BaseConnection]


@pytest.fixture(autouse=True)
def own_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests in other processes use buses of the same names."""
    monkeypatch.setattr(bus_lock, "NAMESPACE", f"cosim test {os.getpid()}")


@pytest.fixture
def connected() -> Iterator[Callable[..., Ends]]:
    """connected(params of both ends, or of each) -> (host, device), open; closed afterwards, with all their threads."""
    links: list[BaseConnection] = []

    def make(host: Params, device: Params | None = None) -> Ends:
        pair = host_link(host, place), device_link(device or host, place)
        links.extend(pair)
        for link in reversed(pair):  # the device makes a pseudo terminal
            link.open()
        return pair

    threads = threading.active_count()
    yield make
    for link in links:
        link.close()
    assert threading.active_count() == threads
