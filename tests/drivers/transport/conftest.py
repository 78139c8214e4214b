"""Both ends of a connection, open."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator

import pytest

from cosim.drivers.transport import BaseConnection, CanParams, SerialParams, bus_lock, device_link, host_link
from cosim.errors import SourceLocation


def place(*keys: str) -> SourceLocation:
    return SourceLocation("rig.yaml", 7, ".".join(keys))


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
