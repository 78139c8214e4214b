"""Who can reach a socket of a run, and what binding leaves alone."""

from __future__ import annotations

import os
import re
import socket as sockets
import stat
import threading
from pathlib import Path

import pytest
import zmq

from cosim.core.access import curve
from cosim.core.access.binding import bind, control_address
from cosim.core.access.curve import client_key_of, is_local, is_private, key_of, own_key
from cosim.core.errors import InputError
from cosim.execution.remote.control_process import ControlServer, ControlSetup
from cosim.output.client.control import ControlClient, NoReply
from tests.kit.refusals import raised

STATUS = {"state": "running", "parameters": {}}


def ignored(**line: object) -> None:
    """What the run would get."""


@pytest.fixture
def bound():
    """Binds PUB sockets, which are closed at the end."""
    opened = []

    def open_one(endpoint: str) -> str:
        opened.append(zmq.Context.instance().socket(zmq.PUB))
        return bind(opened[-1], endpoint, "publish telemetry")

    yield open_one
    for each in opened:
        each.close(0)


@pytest.fixture
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("s")  # names of sockets are short


def refusal(call, endpoint: str) -> InputError:
    return raised(InputError, call, endpoint)


IMPOSSIBLE = {
    "the next port": "127.0.0.1:65536",
    "a large port": "127.0.0.1:99999",
    "a very large port": f"127.0.0.1:{5000 * '9'}",
    "no host": ":9872",
    "a long host": f"{254 * 'n'}:9872",
}


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_an_address_that_cannot_be_is_refused_at_both_ends(bound, said, what):
    """ZeroMQ takes another port in place of 99999, and a client waits for ever for a host with a long name."""
    for call in (bound, ControlClient):
        said(refusal(call, f"tcp://{IMPOSSIBLE[what]}").what)


def test_a_client_needs_a_port(said):
    said(refusal(ControlClient, "tcp://127.0.0.1:0"))
    for address in ("tcp://127.0.0.1:65535", "tcp://[::1]:1", "ipc:///tmp/x", "inproc://99999:99999"):
        ControlClient(address).close()


def test_a_file_is_closed_to_other_users_whatever_the_umask(bound, folder):
    mask = os.umask(0)
    try:
        bound(f"ipc://{folder}/a")
    finally:
        assert os.umask(mask) == 0
    assert stat.S_IMODE((folder / "a").stat().st_mode) == 0o600


def test_the_socket_of_a_running_program_is_not_taken_over(bound, folder, said):
    bound(f"ipc://{folder}/a")
    said(refusal(bound, f"ipc://{folder}/a").what)
    with zmq.Context.instance().socket(zmq.SUB) as reader:  # the first one is still there
        reader.connect(f"ipc://{folder}/a")


def test_the_socket_of_a_dead_program_is_replaced_but_not_that_of_another_user(bound, folder, said, monkeypatch):
    for name in "ab":
        with sockets.socket(sockets.AF_UNIX) as dead:
            dead.bind(str(folder / name))
    assert bound(f"ipc://{folder}/a") == f"ipc://{folder}/a"
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    said(refusal(bound, f"ipc://{folder}/b").what)


def test_a_file_that_is_no_socket_is_kept(bound, folder, said):
    (folder / "rig.yaml").write_text("mechanism:")
    (folder / "link").symlink_to(folder / "rig.yaml")
    what = refusal(bound, f"ipc://{folder}/rig.yaml").what
    assert refusal(bound, f"ipc://{folder}/link").what == what
    said(what)
    assert (folder / "rig.yaml").read_text() == "mechanism:"


def test_a_folder_that_does_not_exist(bound, folder, said):
    said(refusal(bound, f"ipc://{folder}/none/a").what, re.escape(str(folder)))


def test_of_programs_that_start_together_one_serves(folder):
    """Each looks, then binds: between them no other does."""
    outcomes, barrier = list[str](), threading.Barrier(4)

    def start(socket: zmq.Socket) -> None:
        barrier.wait()
        try:
            outcomes.append(bind(socket, f"ipc://{folder}/a", "publish telemetry"))
        except InputError as error:
            outcomes.append(error.what)

    started = [zmq.Context.instance().socket(zmq.PUB) for _ in range(4)]
    threads = [threading.Thread(target=start, args=(socket,)) for socket in started]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for socket in started:
        socket.close(0)
    assert sum(outcome.startswith("ipc:") for outcome in outcomes) == 1


@pytest.mark.parametrize(
    ("endpoint", "local", "private"),
    [
        ("ipc:///tmp/a", True, True),
        ("ipc://@a", True, False),
        ("tcp://127.0.0.1:9873", True, False),
        ("tcp://localhost:9873", True, False),
        ("tcp://[::1]:9873", True, False),
        ("tcp://127.0.0.1.evil.example:9873", False, False),
        ("tcp://127.evil.example:9873", False, False),
        ("tcp://localhost.evil.example:9873", False, False),
        ("tcp://192.168.1.5:9873", False, False),
    ],
)
def test_who_can_reach_an_endpoint(endpoint, local, private):
    assert (is_local(endpoint), is_private(endpoint)) == (local, private)
    assert key_of(endpoint, None) == (None if private else str(own_key()))
    assert key_of(endpoint, "given.key") == client_key_of(endpoint, "given.key") == "given.key"
    assert client_key_of(endpoint, None) == (own_key() if local and not private else None)


def test_the_key_of_the_user_is_made_once_and_closed_to_others():
    file = own_key()
    content = file.read_bytes()
    assert own_key() == file and file.read_bytes() == content
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not [each for each in file.parent.iterdir() if each.name.startswith(f"{curve.OWN_KEY}.")]


@pytest.fixture(params=["private", "loopback", "abstract"])
def control(request, folder):
    """The address of a control socket, served by a thread."""
    addresses = {"private": control_address(), "loopback": "tcp://127.0.0.1:*", "abstract": f"ipc://@{folder}"}
    endpoint = addresses[request.param]
    ended = threading.Event()
    reading, writing = os.pipe()
    with ControlServer(ControlSetup(endpoint, STATUS, {}, {}, 2.0), ignored) as server:

        def work() -> None:
            while not ended.is_set():
                server.turn(reading)

        thread = threading.Thread(target=work)
        thread.start()
        yield server
        ended.set()
        os.write(writing, b"x")
        thread.join()
    os.close(reading), os.close(writing)


def test_a_client_of_the_same_user_needs_no_words(control):
    with ControlClient(control.endpoint) as client:
        assert client.status()["state"] == "running"
    if control.endpoint == control_address():
        with ControlClient() as client:
            assert client.status()["state"] == "running"


def test_a_client_of_another_user_gets_nothing(control, monkeypatch, tmp_path):
    """The file of a socket is closed to it by its mode; of another address it has no key, or its own."""
    if is_private(control.endpoint):
        assert stat.S_IMODE(os.stat(control.endpoint.removeprefix("ipc://")).st_mode) == 0o600
        return
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(other))
    for theirs in (None, own_key):
        if theirs is not None:
            theirs()
        with ControlClient(control.endpoint, timeout=0.3) as client, pytest.raises(NoReply):
            client.status()


ORDER = b'{"command":"status"}'


def http_request(port: str) -> bytes:
    """What a page sends with `fetch(url, {method: "POST", body})`. It chooses path and body."""
    for length in range(76, 400):
        head = f"POST /{'z@' * length} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://evil.example\r\n"
        body = bytes([len(ORDER) + 1, 0]) + ORDER
        request = f"{head}Content-Type: text/plain\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
        for shift in range(2):
            shifted = request.replace(b"/", b"/" + b"@" * shift, 1)
            if frames_of(shifted)[-2:] and frames_of(shifted)[-1] == (0, ORDER) and not frames_of(shifted)[-2][0] & 1:
                return shifted
    raise AssertionError("no such request")


def frames_of(data: bytes) -> list[tuple[int, bytes]]:
    """(flags, body) of frames of ZMTP 1.0: a byte with the length, flags included, the flags and the body."""
    frames, at = list[tuple[int, bytes]](), 0
    while at < len(data) and data[at]:
        size = data[at]
        frames.append((data[at + 1] if at + 1 < len(data) else 0, data[at + 2 : at + 1 + size]))
        at += 1 + size
    return frames if at == len(data) else []


@pytest.mark.parametrize("keyed", [True, False])
def test_a_request_of_a_browser_is_no_command(keyed, monkeypatch):
    """Without a key ZeroMQ takes what does not begin as a greeting for frames of its first protocol, with lengths that
    are letters: this is why commands over tcp have a key on loopback too."""
    if not keyed:
        monkeypatch.setattr("cosim.execution.remote.control_process.key_of", lambda endpoint, key: None)
    with ControlServer(ControlSetup("tcp://127.0.0.1:*", STATUS, {}, {}, 2.0), ignored) as server:
        requests = list[bytes]()
        monkeypatch.setattr(server.arbiter, "handle", lambda client, data, now: requests.append(data) or {})
        host, port = server.endpoint.removeprefix("tcp://").split(":")
        reading, writing = os.pipe()
        with sockets.create_connection((host, int(port))) as connection:
            connection.sendall(http_request(port))
            for _ in range(5):
                server.turn(reading)
        os.close(reading), os.close(writing)
    assert (ORDER in requests) is not keyed
