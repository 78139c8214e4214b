"""What `cosim dash` refuses."""

import socket
import sys
from pathlib import Path

import pytest

from cosim.dashboard.command import dash
from cosim.errors import InputError


def refusal(path: Path, port: int = 0, frame_rate: float = 30.0) -> str:
    with pytest.raises(InputError) as caught:
        dash(str(path), "127.0.0.1", port, False, frame_rate)
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


def test_a_frame_rate_that_is_none(tmp_path: Path) -> None:
    expected = "--frame-rate: 0 is no rate; give one above 0, such as 30"
    assert refusal(tmp_path / "run.mcap", frame_rate=0.0) == expected


def test_a_recording_that_does_not_exist(tmp_path: Path) -> None:
    path = tmp_path / "run.mcap"
    assert refusal(path) == f"{path}: cannot read the recording: No such file or directory; check the path"


def test_a_file_that_is_no_recording(tmp_path: Path) -> None:
    path = tmp_path / "run.mcap"
    path.write_text("mechanism: {}")
    assert refusal(path) == f"{path}: not an MCAP file; give one written by 'cosim run RIG --record FILE.mcap'"


def test_viser_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cosim import load_rig

    path = tmp_path / "run.npz"
    load_rig("rigs/arm_sim.yaml").run(0.01).save(path)
    monkeypatch.setitem(sys.modules, "viser", None)
    assert refusal(path) == "dash: the page needs viser; run pip install 'cosim[dash]'"
