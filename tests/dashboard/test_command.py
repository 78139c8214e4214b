"""What `cosim dash` refuses."""

import socket
import sys
from pathlib import Path

import pytest

from cosim import load_rig
from cosim.apps.dashboard import command as command_module
from cosim.apps.dashboard.command import Joining, RigChoice, dash
from cosim.apps.dashboard.web_page import WebAddress
from cosim.core.errors import InputError
from tests.kit.command import RIG
from tests.kit.refusals import raised


def refusal(source: str, choice: RigChoice | None = None, **options) -> str:
    """options: host, port, frame_rate, joining."""
    web = WebAddress(options.pop("host", "127.0.0.1"), options.pop("port", 0))
    rate = options.pop("frame_rate", 30.0)
    return str(raised(InputError, dash, source, web, False, rate, choice or RigChoice(), **options))


STREAM, NO_PORT = "tcp://127.0.0.1:9872", "tcp://127.0.0.1:99999"
REFUSED = {
    "no port": ("run.mcap", {"port": 70_000}),
    "no frame rate": ("run.mcap", {"frame_rate": 0.0}),
    "no recording": ("run.mcap", {}),
    "another file": ("text.mcap", {}),
    "no rig": ("none.yaml", {}),
    "a value that no rig has": ("rig.yaml", {"choice": RigChoice(["schedule.duration=-1"])}),
    "no port of a stream": (NO_PORT, {"joining": Joining(None)}),
    "no port of a control socket": (STREAM, {"joining": Joining(NO_PORT)}),
    "no control socket": (STREAM, {"joining": Joining("tcp://nowhere")}),
    "a key for a rig": ("rig.yaml", {"joining": Joining(key="a.pub")}),
    "a control socket for a rig": ("rig.yaml", {"joining": Joining("tcp://127.0.0.1:1")}),
}
CHOICES = {
    "--set": RigChoice(["arm.kp=3"]),
    "--duration": RigChoice(duration="3"),
    "--record": RigChoice(record=Path("a")),
}
REFUSED |= {
    f"{option} for {source}": (source, {"choice": choice})
    for option, choice in CHOICES.items()
    for source in ("run.mcap", STREAM)
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_fit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, said) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.mcap").write_text("mechanism: {}")
    Path("rig.yaml").write_text(RIG)
    source, options = REFUSED[what]
    found = refusal(source, **options)
    said(found)
    assert not what.startswith("--") or found.startswith(what.partition(" ")[0])


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        found = refusal(str(tmp_path / "run.mcap"), port=port)
        assert found.startswith(f"--port: port {port} of 127.0.0.1 cannot be opened (Address already in use); pass")


@pytest.mark.parametrize("host", ["192.0.2.1", 300 * "n", 300 * "é", "a\0b"])
def test_a_host_that_is_none(tmp_path: Path, host: str) -> None:
    found = refusal(str(tmp_path / "run.mcap"), host=host)
    assert found.startswith(f"--host: '{InputError(host[:5])}")
    assert "' is no name or address of this machine (" in found
    assert found.endswith("); give one such as 127.0.0.1")


def test_viser_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.npz"
    (tmp_path / "rig.yaml").write_text(RIG)
    load_rig(tmp_path / "rig.yaml").run(0.01).save(path)
    monkeypatch.setitem(sys.modules, "viser", None)
    assert refusal(str(path)) == "dash: the page needs viser; run pip install 'cosim[dash]'"


def test_a_rig_that_is_wrong_ends_the_page_with_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "rig.yaml"
    path.write_text("mechanism: {bodies: []}\nscedule: {}\n")
    assert refusal(str(path)) == str(raised(InputError, load_rig, path))


@pytest.mark.parametrize("words", ["", "rig.yaml --connect tcp://127.0.0.1:9872", "--connect run.mcap"])
def test_words_of_the_command_that_do_not_fit(command, words, said) -> None:
    said(command.refuses("dash", *words.split()))


def test_nothing_at_the_address_is_stated_once_and_the_page_waits(monkeypatch: pytest.MonkeyPatch, said) -> None:
    class Watched:
        address, looks = "tcp://127.0.0.1:9", 0

        @property
        def about(self):
            self.looks += 1
            return None if self.looks < 5 else type("About", (), {"drawing": ""})()

    class Shown:
        closed = False

    stated: list[str] = []
    monkeypatch.setattr(command_module, "ANSWER_TIMEOUT", 0.0)
    command_module._show_watched(Shown(), Watched(), stated.append)  # type: ignore[arg-type]
    said(stated)
