"""Every kind of plug-in from outside: by an entry point of an installed distribution, and as a file beside the rig."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from cosim import load_rig
from tests.kit.distributions import install
from tests.kit.given import beside
from tests.kit.refusals import refusal

GIVEN = beside(__file__)

# lines 1 to 5
RIG = """\
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {name: link, joint: hinge, type: JOINT, mass: 1, inertia: [1, 1, 1]}
    - {name: cart, joint: slide, type: prismatic, parent: base, axis: [1, 0, 0], mass: 1}
"""
PARTS = GIVEN["parts"]
SIMULATED = [kind for kind in PARTS if kind != "driver"]


def text(kind: str, type: str) -> str:
    """A rig with a part of this kind and type."""
    _, _, section, _ = PARTS[kind]
    rig = RIG.replace("JOINT", f"{type}, params: {{reach: 0.5}}" if kind == "joint" else "prismatic, axis: [0, 1, 0]")
    return rig + section.replace("TYPE", type).replace("STEP", "{type: quintic, goal: 1, duration: 1}")


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """outside(kind, code) -> the types by which a rig in the current folder names this code: `far` and `mine.py`."""
    monkeypatch.chdir(tmp_path)

    def make(kind: str, code: str) -> tuple[str, str]:
        group = PARTS[kind][0]
        monkeypatch.syspath_prepend(install(tmp_path / "site", {group: {"far": "far_part"}}, {"far_part": code}))
        Path("parts").mkdir()
        Path("parts/mine.py").write_text(code)
        return "far", "parts/mine.py"

    before = set(sys.modules)
    yield make
    for name in set(sys.modules) - before:
        if name == "far_part" or name.startswith(str(tmp_path)):
            del sys.modules[name]
    importlib.invalidate_caches()


def mistakes(rig: str) -> list[str]:
    Path("rig.yaml").write_text(rig)
    return refusal(load_rig, "rig.yaml").splitlines()


@pytest.mark.parametrize("kind", SIMULATED)
def test_every_kind_comes_from_a_distribution_and_from_a_file(kind, outside):
    values = []
    for type in outside(kind, PARTS[kind][1]):
        Path("rig.yaml").write_text(text(kind, type))
        run = load_rig("rig.yaml").run(0.05)
        values.append(run.values)
        moved = max(np.abs(run[f"{joint}/position"]).max() for joint in ("hinge", "slide"))
        assert moved > 0 or kind == "constraint"
    np.testing.assert_array_equal(*values)


def without_load(code: str, body: str = "pass") -> str:
    """The code of a part whose `load` has another body."""
    at = code.index("def load")
    return f"{code[:at]}{code[at:].splitlines()[0]}\n    {body}\n"


# what is wrong with a part -> its code, from a right one's
WRONG = {
    "fails when it is imported": lambda code: "import math\n1 / 0\n",
    "has no load": lambda code: code.replace("def load", "def lode"),
    "has Params that are no dataclass": lambda code: code.replace("@params\n", ""),
    "loads nothing": lambda code: without_load(code, "return None"),
    "fails when it is loaded": lambda code: without_load(code, "return {}['none']"),
}
CASES = [(kind, what) for what in WRONG for kind in PARTS]
# drivers are loaded when their motors are
CASES = [case for case in CASES if case[0] != "driver" or case[1] in ("fails when it is imported", "has no load")]


@pytest.mark.parametrize(("kind", "what"), CASES)
def test_a_part_that_is_wrong(kind, what, outside, said):
    for type in outside(kind, WRONG[what](PARTS[kind][1])):
        said(mistakes(text(kind, type)))


@pytest.mark.parametrize("kind", PARTS)
def test_names_that_are_wrong(kind, outside, said):
    """A mistyped one, close to a distribution's; a file that is not there; a parameter that it does not have."""
    outside(kind, PARTS[kind][1])
    wrong = [text(kind, "farr"), text(kind, "parts/yours.py")]
    key = next((key for key in ("max_effort", "speed", "push", "reach", "ratio") if f"{key}: " in wrong[0]), "")
    wrong += [text(kind, "far").replace(f"{key}: ", f"{key}x: ")] if key else []
    for rig in wrong:
        (line,) = mistakes(rig)
        assert line.startswith(PARTS[kind][3])
        said(line)


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("actuator", "return Ideal(params)", "x = Ideal(params)\n    x.outputs = {}\n    return x"),
        ("trajectory", '"velocity": self.v, ', ""),
        ("trajectory", "sample(self, t):", "sample(self, t):\n        return (0.0,) * 4"),
        ("trajectory", '"effort": zero', '"effort": 0.0'),
        ("controller", "inputs = {}", 'inputs = joint_signals(("velocity",), 3)'),
    ],
)
def test_one_that_does_not_follow_its_contract(kind, old, new, outside, said):
    for type in outside(kind, PARTS[kind][1].replace(old, new)):
        said(mistakes(text(kind, type)))


def test_a_family_of_drivers_in_one_module(outside):
    for type, name in zip(outside("driver", PARTS["driver"][1]), ("far", "mine"), strict=True):
        Path("rig.yaml").write_text(text("driver", type))
        rig = load_rig("rig.yaml")
        assert rig.spec.drivers[0].name == name and rig.plant.real == ("slide",)
        drivers = [group.driver.__class__.__name__ for group in rig.engine().hardware_manager.groups]
        assert drivers == ["SimDriver", "CanDriver"]
