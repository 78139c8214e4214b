"""A page of another origin, in a real browser, reaches neither the page of real motors nor the bridge of Foxglove."""

from __future__ import annotations

import http.server
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import can
import pytest
import viser

from cosim.apps.foxglove.protocol import ORIGINS, SUBPROTOCOL
from cosim.apps.foxglove.server import FoxgloveServer
from cosim.core.access.guarded_server import address_of, listening_socket
from cosim.core.access.handshake import access_of
from tests.kit.browser import Dash

VISER = f"viser-v{viser.__version__}"
# what a page can try; each returns what it has reached, empty for nothing
ATTACK = Path(__file__).with_name("attack.js").read_text(encoding="utf-8")


class Silent(http.server.BaseHTTPRequestHandler):
    """The page of the attacker."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<title>attack</title><body></body>")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def attacker(browser) -> Iterator[Any]:
    """(tab, port of a server of the attacker)."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Silent)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    tab = browser.new_page()
    yield tab, server.server_port
    tab.close()
    server.shutdown()
    thread.join()
    server.server_close()


def attacked(attacker: Any, url: str, subprotocol: str) -> None:
    """url: of the server, as its user has it. The attacker knows host and port; where it says so the token too."""
    tab, port = attacker
    at = urlsplit(url)
    for name in ("127.0.0.1", "localhost", "evil.example"):
        tab.goto(f"http://{name}:{port}/")
        for query in ("", "?token=guess", f"?{at.query}"):
            places = [f"http://{at.netloc}/", f"ws://{at.netloc}/{query}", subprotocol]
            assert tab.evaluate(ATTACK, places) == [], (name, query)
    tab.goto(f"http://evil.example:{at.port}/")  # DNS rebinding: one origin with the server, for the browser
    places = [f"http://evil.example:{at.port}/", f"ws://evil.example:{at.port}/", subprotocol]
    assert tab.title() in ("Refused", "")
    assert tab.evaluate(ATTACK, places) == []


@contextmanager
def emulator(*words: str) -> Iterator[None]:
    command = [sys.executable, "-m", "cosim", "emulate", "rigs/arm_can.yaml", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while not process.stdout.readline().startswith("emulating"):
            pass
        try:
            yield
        finally:
            process.send_signal(signal.SIGINT)


def commands_on(bus: can.BusABC) -> int:
    """Frames that switch a moteus drive to a mode in which it moves."""
    count = 0
    while (message := bus.recv(0.0)) is not None:
        count += message.arbitration_id & 0xFF00 == 0x8000 and bytes(message.data[:3]) == b"\x01\x00\x0a"
    return count


def test_the_page_of_real_motors(attacker) -> None:
    group = f"239.84.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"
    items = (f"drivers.moteus.bus.channel={group}", "guard.stale=0.5", "guard.watchdog=3", "drivers.moteus.watchdog=2")
    words = [word for item in items for word in ("--set", item)]
    with emulator(*words), can.Bus(channel=group, interface="udp_multicast", fd=True) as bus:
        dash = Dash("rigs/arm_can.yaml", *words, "--frame-rate", "2")
        try:
            attacked(attacker, dash.url, VISER)
        finally:
            dash.close()
        assert commands_on(bus) == 0


def test_the_bridge_of_foxglove(attacker) -> None:
    class Parameters:
        """asked: what came."""

        def __init__(self) -> None:
            self.asked: list[object] = []

        def get(self, names):
            self.asked.append(names)
            return {}

        set = get

    access, parameters = access_of([], ORIGINS), Parameters()
    with closing(listening_socket("127.0.0.1", 0)) as listener:
        server = FoxgloveServer(listener, access, parameters)
        try:
            attacked(attacker, address_of(listener, access, "ws"), SUBPROTOCOL)
        finally:
            server.stop()
    assert parameters.asked == []
