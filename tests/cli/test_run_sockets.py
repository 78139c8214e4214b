"""The options `--telemetry` and `--control`: without a value they are the rig's, or the usual ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from cosim.cli.run_overrides import sockets_of
from cosim.cli.run_summary import stream_line
from cosim.core.access.private_folder import private_folder
from tests.kit.command import RIG


@pytest.fixture
def rig(tmp_path: Path) -> Path:
    path = tmp_path / "rig.yaml"
    path.write_text(RIG)
    return path


def test_without_a_value_the_rig_decides(rig: Path) -> None:
    given = {"publish": "", "control": ""}
    folder = private_folder()
    usual = [
        (f"telemetry.publish=ipc://{folder}/stream", "--telemetry"),
        (f"telemetry.control=ipc://{folder}/control", "--control"),
    ]
    assert sockets_of(rig, [], given) == usual
    assert sockets_of(rig, [], {"publish": None, "control": None}) == []
    assert sockets_of(rig, ["telemetry.publish=ipc:///tmp/a"], given) == usual[1:]
    rig.write_text(RIG + "telemetry: {publish: 'ipc:///tmp/rig'}\n")
    assert sockets_of(rig, [], given) == usual[1:]
    own = [("telemetry.publish=ipc:///tmp/b", "--telemetry")]
    assert sockets_of(rig, [], {"publish": "ipc:///tmp/b", "control": None}) == own


def test_the_summary_states_who_else_can_read_the_stream() -> None:
    given = {"endpoint": "tcp://127.0.0.1:9872", "missed": 2, "failure": None}
    assert stream_line({**given, "open": False}) == "stream   tcp://127.0.0.1:9872: 2 ticks missed"
    others = "which other users of this machine can read: 2 ticks missed"
    assert stream_line({**given, "open": True}) == f"stream   tcp://127.0.0.1:9872, {others}"
