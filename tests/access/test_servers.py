"""Every server of the product stands behind the guard: those that exist, and those that will be added."""

from __future__ import annotations

import ast
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

import cosim
from cosim.apps.foxglove.parameters import RunParameters
from cosim.apps.foxglove.protocol import ORIGINS
from cosim.apps.foxglove.server import FoxgloveServer
from cosim.core.access.guarded_server import HEADERS, address_of, guarding, listening_socket, place_of
from cosim.core.access.handshake import Access, access_of
from cosim.core.errors import InputError, RunError

PACKAGE = Path(cosim.__file__).parent
# what can listen: libraries, and calls by the name that is called
WEB_LIBRARIES = {"aiohttp", "asyncio", "bokeh", "dash", "distributed", "fastapi", "flask", "foxglove", "helics", "http"}
OTHER_LIBRARIES = {"multiprocessing", "socket", "socketserver", "tornado", "uvicorn", "viser", "websockets", "zmq"}
LIBRARIES = WEB_LIBRARIES | OTHER_LIBRARIES
LISTENS = re.compile(r"bind|listen|serve|serve_forever|.*Server")  # in a module with such a library
ALWAYS_LISTENS = re.compile(r"(create|start)_(unix_)?server|run_app|LocalCluster|.*CreateBroker")
MAY_LISTEN = re.compile(rf"\b({LISTENS.pattern}|{ALWAYS_LISTENS.pattern})\(")  # parsing all modules takes long
# where they are, and why others get no further there
KNOWN = {
    ("core/access/guarded_server.py", "bind"): "a probe of the host, which does not listen",
    ("core/access/guarded_server.py", "create_server"): "the socket that the guard gets",
    ("core/access/guarded_server.py", "serve"): "the guard",
    ("apps/dashboard/web_page.py", "ViserServer"): "guarded",
    ("simulation/federation/federate.py", "bind"): "a probe for a free port",
    ("simulation/federation/federation.py", "helicsCreateBroker"): "on loopback; its limits are in the threat model",
    ("simulation/fmi/fmu_process.py", "FmuServer"): "a pair of sockets without a name",
    ("simulation/fmi/fmu_process.py", "serve"): "likewise",
    ("apps/foxglove/command.py", "FoxgloveServer"): "guarded in apps/foxglove/server",
    ("apps/foxglove/server.py", "serve"): "guarded",
    ("core/access/binding.py", "bind"): "a file closed to other users, or a key where commands are taken",
    ("output/stream/stream_sink.py", "bind"): "guarded in core/access/binding",
    ("execution/remote/control_process.py", "ControlServer"): "likewise",
    ("execution/remote/control_process.py", "bind"): "likewise",
    ("execution/remote/control_process.py", "serve"): "likewise",
}


def found_calls() -> set[tuple[str, str]]:
    found = set()
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text()
        if not MAY_LISTEN.search(text):
            continue
        tree = ast.parse(text)
        names = LISTENS if LIBRARIES & set(imported(tree)) else ALWAYS_LISTENS
        here = {name for name in called(tree) if names.fullmatch(name) or ALWAYS_LISTENS.fullmatch(name)}
        found |= {(path.relative_to(PACKAGE).as_posix(), name) for name in here}
    return found


def imported(tree: ast.AST) -> Iterator[str]:
    """The first words of what is imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]


def called(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def test_what_listens_is_known():
    """A server that is added is a new row of KNOWN, and of SERVERS where it is one for browsers."""
    assert found_calls() == set(KNOWN)


@contextmanager
def dashboard(access: Access, host: str) -> Iterator[socket.socket]:
    from cosim.apps.dashboard.web_page import open_server

    with closing(listening_socket(host, 0)) as listener:
        server = open_server(listener, access)
        yield listener
        server.stop()


@contextmanager
def foxglove(access: Access, host: str) -> Iterator[socket.socket]:
    with closing(listening_socket(host, 0)) as listener:
        server = FoxgloveServer(listener, access, RunParameters(None, ""))
        yield listener
        server.stop()


class Kind(NamedTuple):
    """open: serves; subprotocol: of its WebSocket; page: the status of its page for who may see it."""

    open: Callable
    subprotocol: str
    page: int


def _viser() -> str:
    import viser

    return f"viser-v{viser.__version__}"


SERVERS = {
    "apps/dashboard/web_page.py": Kind(dashboard, _viser(), 200),
    "apps/foxglove/server.py": Kind(foxglove, "foxglove.sdk.v1", 426),
}


class Served(NamedTuple):
    kind: Kind
    listener: socket.socket
    access: Access

    def status(self, upgrade: bool, host: str, origin: str = "", path: str = "", method: str = "GET") -> int:
        """Of the answer to a request; 0 where the connection ends without one."""
        lines = [f"{method} {path or f'/?token={self.access.token}'} HTTP/1.1", f"Host: {host}"]
        lines += [f"Origin: {origin}"] if origin else []
        if upgrade:
            lines += ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"]
            lines += ["Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", f"Sec-WebSocket-Protocol: {self.kind.subprotocol}"]
        return int((self.answer("\r\n".join([*lines, "", ""]).encode()).split() or [b"-", b"0"])[1])

    def answer(self, data: bytes) -> bytes:
        with socket.create_connection(self.listener.getsockname()[:2], timeout=60.0) as connection:
            connection.sendall(data)
            return connection.recv(4096)


@pytest.fixture(scope="module", params=SERVERS)
def served(request) -> Iterator[Served]:
    access = access_of(["robot.example.org"], ORIGINS if "foxglove" in request.param else ())
    with SERVERS[request.param].open(access, "127.0.0.1") as listener:
        yield Served(SERVERS[request.param], listener, access)


def test_every_guarded_server_is_tested():
    assert {place for place, why in KNOWN.items() if why == "guarded"} == {
        (file, name) for file in SERVERS for place, name in KNOWN if place == file
    }


def test_the_user_gets_in(served):
    here = place_of(served.listener)
    assert served.status(False, here) == served.kind.page
    assert served.status(True, here) == 101
    assert served.status(True, here, f"http://{here}") == 101
    assert served.status(True, "robot.example.org:8080", "http://robot.example.org:8080") == 101


@pytest.mark.parametrize("upgrade", [False, True])
def test_nobody_else_does(served, upgrade):
    here, port = place_of(served.listener), served.listener.getsockname()[1]
    token = served.access.token
    for path in ("/", "/?token=", f"/?token={token[:-1]}", f"/?token={token.swapcase()}", f"/{token}", "/index.html"):
        assert served.status(upgrade, here, path=path) == 403, path
    for origin in ("http://evil.example", "null", f"http://127.0.0.1:{port - 1}", f"http://localhost:{port}"):
        assert served.status(upgrade, here, origin) == 403, origin
    for name in ("evil.example", f"evil.example:{port}", f"127.0.0.1.evil.example:{port}"):
        assert served.status(upgrade, name, f"http://{name}") == 403, name  # DNS rebinding


def test_other_requests_of_a_page_are_no_requests(served):
    for method in ("POST", "PUT", "OPTIONS", "DELETE", "HEAD"):
        assert served.status(False, place_of(served.listener), method=method) in (0, 400, 403, 405, 501), method


def test_answers_are_not_kept_framed_or_passed_on(served):
    for path in ("/", f"/?token={served.access.token}"):
        answer = served.answer(f"GET {path} HTTP/1.1\r\nHost: {place_of(served.listener)}\r\n\r\n".encode())
        assert answer.startswith((b"HTTP/1.1 403", f"HTTP/1.1 {served.kind.page}".encode()))
        if not answer.startswith(b"HTTP/1.1 426"):
            assert all(f"{name}: {value}".encode() in answer for name, value in HEADERS.items())
        assert served.access.token.encode() not in answer


def test_the_token_is_not_logged(served, caplog, capfd):
    with caplog.at_level(0):
        served.status(True, place_of(served.listener))
        served.status(False, "evil.example")
        served.status(False, place_of(served.listener), method="POST")
    out, err = capfd.readouterr()
    assert served.access.token not in caplog.text + out + err


def test_a_port_that_is_taken():
    with closing(listening_socket("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(InputError, match=f"--port: port {port} of 127.0.0.1 cannot be opened"):
            listening_socket("127.0.0.1", port)


def test_a_server_in_the_network_has_the_address_of_this_machine():
    with closing(listening_socket("0.0.0.0", 0)) as listener:
        port, access = listener.getsockname()[1], access_of([])
        assert address_of(listener, access, "http") == f"http://127.0.0.1:{port}/?token={access.token}"


def test_a_library_that_starts_no_server_is_not_believed():
    listener = listening_socket("127.0.0.1", 0)
    with (
        closing(listener),
        pytest.raises(RunError, match=r"dash: the server of this version of viser cannot be guarded"),
        guarding(access_of([]), listener, lambda answer: answer),
    ):
        pass
