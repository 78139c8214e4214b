"""What `cosim dash` refuses."""

import socket
import sys
from pathlib import Path

import pytest

from cosim import load_rig
from cosim.dashboard import command as command_module
from cosim.dashboard.command import Joining, RigChoice, dash
from cosim.dashboard.web_page import WebAddress
from cosim.errors import InputError
from tests.kit.command import RIG, command

__all__ = ["command"]


def refusal(path: Path, port: int = 0, frame_rate: float = 30.0) -> str:
    with pytest.raises(InputError) as caught:
        dash(str(path), WebAddress("127.0.0.1", port), False, frame_rate)
    return str(caught.value)


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        expected = f"port {port} of 127.0.0.1 cannot be opened (Address already in use); pass another one, or 0 for any"
        assert refusal(tmp_path / "run.mcap", port) == f"--port: {expected}"


def test_a_number_that_is_no_port(tmp_path: Path) -> None:
    expected = "--port: 70000 is no port; give one from 1 to 65535, or 0 for any that is free"
    assert refusal(tmp_path / "run.mcap", 70_000) == expected


@pytest.mark.parametrize("host", ["192.0.2.1", 300 * "n", 300 * "é", "a\0b"])
def test_a_host_that_is_none(tmp_path: Path, host: str) -> None:
    with pytest.raises(InputError) as caught:
        dash(str(tmp_path / "run.mcap"), WebAddress(host, 0), False, 30.0)
    assert str(caught.value).startswith(f"--host: '{InputError(host[:5])}")
    assert "' is no name or address of this machine (" in str(caught.value)
    assert str(caught.value).endswith("); give one such as 127.0.0.1")


def test_an_address_that_cannot_be() -> None:
    address = "tcp://127.0.0.1:99999"
    expected = f"{address}: there is no port 99999; use one from 1 to 65535"
    for joining in ((address, None), ("tcp://127.0.0.1:9872", address)):
        with pytest.raises(InputError) as caught:
            dash(joining[0], WebAddress("127.0.0.1", 0), False, 30.0, joining=Joining(joining[1]))
        assert str(caught.value) == expected


def test_a_frame_rate_that_is_none(tmp_path: Path) -> None:
    expected = "--frame-rate: 0 is no rate; give one above 0, such as 30"
    assert refusal(tmp_path / "run.mcap", frame_rate=0.0) == expected


@pytest.mark.parametrize(
    ("option", "choice"),
    [
        ("--set", RigChoice(["arm.kp=3"])),
        ("--duration", RigChoice(duration="3")),
        ("--record", RigChoice(record=Path("a.mcap"))),
    ],
)
@pytest.mark.parametrize("source", ["run.mcap", "tcp://127.0.0.1:9872"])
def test_options_of_a_rig_without_a_rig(source: str, option: str, choice: RigChoice) -> None:
    with pytest.raises(InputError) as caught:
        dash(source, WebAddress("127.0.0.1", 0), False, 30.0, choice)
    assert str(caught.value) == f"{option}: {source} is no rig that the page runs; take the option out"


def test_a_recording_that_does_not_exist(tmp_path: Path) -> None:
    path = tmp_path / "run.mcap"
    assert refusal(path) == f"{path}: cannot read the recording: No such file or directory; check the path"


def test_a_file_that_is_no_recording(tmp_path: Path) -> None:
    path = tmp_path / "run.mcap"
    path.write_text("mechanism: {}")
    assert refusal(path) == f"{path}: not an MCAP file; give one written by 'cosim run RIG --record FILE.mcap'"


def test_viser_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.npz"
    load_rig("rigs/arm_sim.yaml").run(0.01).save(path)
    monkeypatch.setitem(sys.modules, "viser", None)
    assert refusal(path) == "dash: the page needs viser; run pip install 'cosim[dash]'"


def test_a_rig_that_is_wrong_ends_the_page_with_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "rig.yaml"
    path.write_text("mechanism: {bodies: []}\nscedule: {}\n")
    with pytest.raises(InputError) as caught:
        dash(str(path), WebAddress("127.0.0.1", 0), False, 30.0)
    with pytest.raises(InputError) as same:
        load_rig(path)
    assert str(caught.value) == str(same.value)


def test_a_rig_that_does_not_exist(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.yaml") == f"{tmp_path / 'none.yaml'}: no such file; check the path"


@pytest.mark.parametrize(
    ("option", "joining"), [("--key", Joining(key="a.pub")), ("--control", Joining("tcp://127.0.0.1:1"))]
)
def test_options_of_a_joined_run_for_a_rig(tmp_path: Path, option: str, joining: Joining) -> None:
    path = tmp_path / "rig.yaml"
    with pytest.raises(InputError) as caught:
        dash(str(path), WebAddress("127.0.0.1", 0), False, 30.0, joining=joining)
    assert str(caught.value) == f"{option}: {path} is run by the page, at addresses of its own; take the option out"


def test_a_value_that_no_rig_has(tmp_path: Path) -> None:
    path = tmp_path / "rig.yaml"
    path.write_text(RIG)
    with pytest.raises(InputError) as caught:
        dash(str(path), WebAddress("127.0.0.1", 0), False, 30.0, RigChoice(["schedule.duration=-1"]))
    assert str(caught.value).startswith("--set schedule.duration")


def test_what_is_no_address_of_a_control_socket() -> None:
    with pytest.raises(InputError) as caught:
        dash("tcp://127.0.0.1:9", WebAddress("127.0.0.1", 0), False, 30.0, joining=Joining("tcp://nowhere"))
    expected = "no address of a control socket (Invalid argument); give one such as tcp://127.0.0.1:9873"
    assert str(caught.value) == f"tcp://nowhere: {expected}"


def test_words_of_the_command_that_do_not_fit(command) -> None:
    nothing = "dash: nothing to show; pass a rig, a recording, or --connect with the address of a stream"
    assert command.refuses("dash") == [nothing]
    assert command.refuses("dash", "rig.yaml", "--connect", "tcp://127.0.0.1:9872") == [
        "dash: pass one of 'rig.yaml' and --connect tcp://127.0.0.1:9872"
    ]
    assert command.refuses("dash", "--connect", "run.mcap") == [
        "--connect: 'run.mcap' is no address of a stream; give one such as tcp://127.0.0.1:9872"
    ]


def test_nothing_at_the_address_is_stated_once_and_the_page_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    class Watched:
        address, looks = "tcp://127.0.0.1:9", 0

        @property
        def about(self):
            self.looks += 1
            return None if self.looks < 5 else type("About", (), {"drawing": ""})()

    class Shown:
        closed = False

    said: list[str] = []
    monkeypatch.setattr(command_module, "ANSWER", 0.0)
    command_module._show_watched(Shown(), Watched(), said.append)  # type: ignore[arg-type]
    waits = "warning: tcp://127.0.0.1:9: nothing is published there; the page waits for a run"
    lacks = "has no drawing of its mechanism; runs that this version records or publishes have one"
    assert said == [waits, f"warning: the mechanism is not shown: tcp://127.0.0.1:9: {lacks}"]
