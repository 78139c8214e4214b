"""Reading rigs without the real plug-ins: stand-ins take the place of the packages that hold them."""

import importlib
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

from cosim.rig.sections.rig_spec import RigSpec, read_rig
from tests.kit.refusals import refusal

HEAD = """
from cosim.plugin import PerJoint, param, params
def load(*parts): return parts
@params
class Params:
"""
PARTS = {
    "cosim.plugins.actuators": {
        "ideal": "    pass",
        "motor": "    resistance: float = param(unit='ohm', above=0)\n    gear: float = param(default=1.0)",
    },
    "cosim.plugins.trajectories": {
        "line": "    goal: PerJoint = param(unit='joint position')\n    time: float = param(default=1.0)",
        "still": "    pass",
    },
    "cosim.plugins.controllers": {
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
        return refusal(self.read, text, *overrides).splitlines()


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
    # what finds the packages of an installation for development knows no stand-ins
    finders = [finder for finder in sys.meta_path if not getattr(finder, "__module__", "").startswith("__editable__")]
    monkeypatch.setattr(sys, "meta_path", finders)
    monkeypatch.chdir(tmp_path)
    yield Rigs()
    for name in [name for name in sys.modules if name.rpartition(".")[0] in PARTS]:
        del sys.modules[name]


@pytest.fixture
def schedule(rigs):
    """What becomes of the section `schedule` with this text."""
    return lambda text, *overrides: rigs.read(f"{rigs.mechanism}schedule: {text}\n", *overrides).schedule


@pytest.fixture
def four_cpus(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
