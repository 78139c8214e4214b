"""Rigs for unit tests, made of stand-ins for the packages that hold the real parts; the command line."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

from cosim.cli import main
from cosim.errors import InputErrors
from cosim.rig.spec import RigSpec, read_rig

HEAD = """
from cosim.types import PerJoint, param, params
def load(*parts): return parts
@params
class Params:
"""
PARTS = {
    "cosim.actuators": {
        "ideal": "    pass",
        "motor": "    resistance: float = param(unit='ohm', above=0)\n    gear: float = param(default=1.0)",
    },
    "cosim.trajectories": {
        "line": "    goal: PerJoint = param(unit='joint position')\n    time: float = param(default=1.0)",
        "still": "    pass",
    },
    "controllers": {
        "pd": "    kp: PerJoint = param(min=0)\n    kd: PerJoint = param(min=0, default=0.0)",
        "none": "    pass",
    },
}


class Rigs:
    """Writes `rig.yaml` into the current folder and reads it."""

    head = HEAD
    # lines 1 to 7; the order of the model is shoulder, elbow, thumb, tool, lift
    mechanism = """\
mechanism:
  bodies:
    - {name: upper, joint: shoulder, mass: 2 kg, inertia: [1, 1, 1], limits: {lower: -1, upper: 1, effort: 9}}
    - {name: fore, joint: elbow, mass: 1 kg, inertia: [1, 1, 1]}
    - {name: rail, joint: lift, type: prismatic, mass: 1 kg, parent: base}
    - {name: thumb, mass: 1 kg, inertia: [1, 1, 1], parent: fore, mimic: {joint: elbow}}
    - {name: tool, type: fixed, parent: fore}
"""

    def read(self, text: str, *overrides: str) -> RigSpec:
        Path("rig.yaml").write_text(text)
        return read_rig("rig.yaml", overrides)

    def mistakes(self, text: str, *overrides: str) -> list[str]:
        with pytest.raises(InputErrors) as caught:
            self.read(text, *overrides)
        return str(caught.value).splitlines()


@pytest.fixture(scope="session")
def rig_parts(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("parts")
    for package, modules in PARTS.items():
        (folder / package).mkdir()
        for name, fields in modules.items():
            (folder / package / f"{name}.py").write_text(f"{HEAD}{fields}\n")
    return folder


@pytest.fixture
def rigs(rig_parts, tmp_path, monkeypatch):
    """`Rigs` in an empty folder, with the packages of `PARTS` in place of the real ones."""
    for name in [name for name in sys.modules if name in PARTS or name.rpartition(".")[0] in PARTS]:
        monkeypatch.delitem(sys.modules, name)
    for package in PARTS:
        stand_in = ModuleType(package)
        stand_in.__path__ = [str(rig_parts / package)]
        monkeypatch.setitem(sys.modules, package, stand_in)
    importlib.invalidate_caches()
    monkeypatch.chdir(tmp_path)
    yield Rigs()
    for name in [name for name in sys.modules if name.rpartition(".")[0] in PARTS]:
        del sys.modules[name]


# --- the command line ---

RIG = """\
name: swing
description: A link is held by a PID controller.
mechanism:
  bodies:
    - {name: link, joint: hinge, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}
joints:
  hinge:
    initial: {position: 10 deg}
controllers:
  - {name: hold, type: pid, kp: 50, ki: 10, kd: 5, trajectory: {type: quintic, goal: 30 deg, duration: 0.5}}
schedule: {duration: 0.4 s}
"""


class Command:
    """The `cosim` command in this process, in a folder of its own."""

    rig = RIG  # what is in `rig.yaml`

    def __init__(self, capsys, monkeypatch):
        self.capsys, self.monkeypatch = capsys, monkeypatch

    def __call__(self, *arguments):
        """(exit code, stdout, lines of stderr)."""
        self.monkeypatch.setattr(sys, "argv", ["cosim", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as leave:
            code = leave.code
        out, err = self.capsys.readouterr()
        assert "Traceback" not in out + err
        return code, out, err.splitlines()

    def refuses(self, *arguments):
        """The lines of stderr for wrong input, of which nothing came."""
        code, out, err = self(*arguments)
        assert (code, out) == (2, "")
        return err


@pytest.fixture
def command(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COSIM_INTERPRET", raising=False)
    Path("rig.yaml").write_text(RIG)
    return Command(capsys, monkeypatch)
