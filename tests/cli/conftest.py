"""Recordings of the rig of `command`, made once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cosim import load_rig
from tests.kit.command import RIG, Command


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with recordings: a.mcap, cut.mcap without its end, soft.mcap of a lower gain, half.mcap and half.npz of
    half the duration."""
    folder = tmp_path_factory.mktemp("recordings")
    (folder / "rig.yaml").write_text(RIG)
    rig = load_rig(folder / "rig.yaml")
    rig.run(record=folder / "a.mcap")
    (folder / "cut.mcap").write_bytes((folder / "a.mcap").read_bytes()[:-9])
    load_rig(folder / "rig.yaml", ["controllers.hold.kp=25"]).run(record=folder / "soft.mcap")
    rig.run(0.2, record=folder / "half.mcap").save(folder / "half.npz")
    (folder / "rig.yaml").unlink()
    return folder


@pytest.fixture
def recorded(command: Command, made: Path) -> Command:
    """`command` beside the recordings."""
    for file in made.iterdir():
        os.link(file, file.name)
    return command
