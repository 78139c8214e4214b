"""The server of the page prints nothing: what a command prints is its own."""

from contextlib import closing

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from cosim.apps.dashboard.web_page import open_server
from cosim.core.access.guarded_server import address_of, listening_socket
from cosim.core.access.handshake import access_of


def test_the_server_prints_nothing(capfd):
    access = access_of([])
    with closing(listening_socket("127.0.0.1", 0)) as listener:
        server = open_server(listener, access)
        try:
            with connect(address_of(listener, access, "ws")) as other, pytest.raises(ConnectionClosed):
                other.recv(timeout=60.0)  # refused: it is no client of this version
        finally:
            server.stop()
    assert capfd.readouterr() == ("", "")
