"""Every kind of plug-in from outside: by an entry point of an installed distribution, and as a file beside the rig."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from cosim import load_rig
from cosim.errors import InputErrors
from tests.kit.distributions import install

# lines 1 to 5
RIG = """\
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {name: link, joint: hinge, type: JOINT, mass: 1, inertia: [1, 1, 1]}
    - {name: cart, joint: slide, type: prismatic, parent: base, axis: [1, 0, 0], mass: 1}
"""
PARTS = {
    "actuator": (
        "cosim.actuators",
        """\
from cosim.actuators.ideal import Ideal
from cosim.types import param, params
@params
class Params:
    max_effort: float = param(min=0, default=1.0)
def load(params):
    return Ideal(params)
""",
        "joints: {slide: {actuator: {type: TYPE, max_effort: 0.5}}}\n"
        "controllers: [{type: pid, joints: [slide], kp: 9, ki: 0, kd: 1, trajectory: STEP}]\n",
        "rig.yaml:6 joints.slide.actuator",
    ),
    "trajectory": (
        "cosim.trajectories",
        """\
import numpy as np
from cosim.types import param, params
@params
class Params:
    speed: float = param(default=1.0)
class Ramp:
    end = float("inf")
    def __init__(self, params, start):
        self.v, self.start = params.speed * np.ones(len(start)), start
    def sample(self, t):
        zero = 0 * self.start
        return {"position": self.start + self.v * t, "velocity": self.v, "acceleration": zero, "effort": zero}
def load(params, joints, folder, start):
    return Ramp(params, start)
""",
        "joints: {slide: {prescribed: {type: TYPE, speed: 0.5}}}\n",
        "rig.yaml:6 joints.slide.prescribed",
    ),
    "controller": (
        "cosim.controllers",
        """\
import numpy as np
from cosim.types import COMMAND, joint_signals, param, params
@params
class Params:
    push: float = param(default=1.0)
class Push:
    inputs = {}
    def __init__(self, params, n):
        self.params, self.n, self.outputs = params, n, joint_signals(COMMAND, n)
    def initial(self):
        return {}
    def update(self, t, p, x, u):
        return {}, {name: p.push * np.ones(self.n) * (name == "effort") for name in COMMAND}
def load(params, context):
    return Push(params, len(context.joints))
""",
        "controllers: [{type: TYPE, joints: [slide], push: 0.5}]\n",
        "rig.yaml:6 controllers[0]",
    ),
    "joint": (
        "cosim.joints",
        """\
import numpy as np
from cosim import ops
from cosim.multibody.joints import GeneralMotion
from cosim.types import param, params
@params
class Params:
    reach: float = param(default=1.0)
def load(params):
    return GeneralMotion(("way",), ("m",), lambda q, t: (np.eye(3), ops.array([params.reach * q[0], 0.0, 0.0])))
""",
        "joints: {hinge: {initial: {velocity: 0.5}}}\n",
        "rig.yaml:4 mechanism.bodies[0]",
    ),
    "constraint": (
        "cosim.constraints",
        """\
from cosim.multibody.constraint_laws import ConstraintLaw, ReactionSpec
from cosim.types import param, params
@params
class Params:
    ratio: float = param(default=1.0)
def load(params):
    return ConstraintLaw((ReactionSpec("force", "N", "m"),), lambda frames, q, t: [q[0] - params.ratio * q[1]])
""",
        "  constraints: [{name: tie, type: TYPE, joints: [hinge, slide], params: {ratio: 2}}]\n",
        "rig.yaml:6 mechanism.constraints[0]",
    ),
    "force law": (
        "cosim.forces",
        """\
from cosim.multibody.force_laws import ForceLaw
from cosim.types import param, params
@params
class Params:
    size: float = param(default=1.0)
def load(params):
    return ForceLaw(efforts=lambda frames, q, v, t: [params.size + 0.0 * q[0]])
""",
        "  forces: [{name: push, type: TYPE, joints: [slide], params: {size: 2}}]\n",
        "rig.yaml:6 mechanism.forces[0]",
    ),
    "driver": (
        "cosim.drivers",
        """\
from cosim.drivers import odrive
from cosim.drivers.odrive import MODES, JointParams, connection_name, device, emulate, host, traffic
from cosim.types import params
@params
class Params(odrive.Params):
    pass
def load(params, context):
    return odrive.load(params, context)
""",
        "joints: {slide: {limits: {velocity: 1, effort: 1}}}\n"
        "drivers: [{type: TYPE, bus: {interface: virtual, channel: a}, joints: {slide: {id: 1}}}]\n",
        "rig.yaml:7 drivers[0]",
    ),
}
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
    with pytest.raises(InputErrors) as caught:
        load_rig("rig.yaml")
    return str(caught.value).splitlines()


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


@pytest.mark.parametrize("kind", PARTS)
def test_a_mistyped_name_is_close_to_that_of_a_distribution(kind, outside):
    outside(kind, PARTS[kind][1])
    place = PARTS[kind][3]
    (line,) = mistakes(text(kind, "farr"))
    words = {"joint": "joint type 'farr' is not supported"}.get(kind, f"unknown {kind} 'farr'")
    assert line == f"{place}.type: {words}; did you mean 'far'?"


@pytest.mark.parametrize("kind", PARTS)
def test_a_file_that_is_not_there(kind, outside):
    outside(kind, PARTS[kind][1])
    (line,) = mistakes(text(kind, "parts/yours.py"))
    assert line == f"{PARTS[kind][3]}.type: no such file 'parts/yours.py' beside the rig"


@pytest.mark.parametrize("kind", PARTS)
def test_one_that_fails_when_it_is_imported(kind, outside):
    what = f"the {kind} cannot be imported: ZeroDivisionError: division by zero"
    expected = ["entry point far_part", "parts/mine.py:2"]
    for type, place in zip(outside(kind, "import math\n1 / 0\n"), expected, strict=True):
        assert mistakes(text(kind, type)) == [f"{place}: {what}"]


@pytest.mark.parametrize("kind", PARTS)
def test_one_without_load(kind, outside):
    for type, name in zip(outside(kind, PARTS[kind][1].replace("def load", "def lode")), NAMES, strict=True):
        assert mistakes(text(kind, type)) == [f"{PARTS[kind][3]}.type: {name} is no {kind}: it does not define load"]


NAMES = ("entry point far_part", "parts/mine.py")


@pytest.mark.parametrize("kind", SIMULATED)
def test_one_whose_params_are_no_dataclass(kind, outside):
    for type, name in zip(outside(kind, PARTS[kind][1].replace("@params\n", "")), NAMES, strict=True):
        what = f"{name} is no {kind}: it has a Params that is no dataclass"
        assert mistakes(text(kind, type)) == [f"{PARTS[kind][3]}.type: {what}"]


@pytest.mark.parametrize("kind", SIMULATED)
def test_a_parameter_that_it_does_not_have(kind, outside):
    place = PARTS[kind][3] + (".params" if kind in ("joint", "constraint") else "")
    for type in outside(kind, PARTS[kind][1]):
        for key in ("max_effort", "speed", "push", "reach", "ratio"):
            if f"    {key}:" in PARTS[kind][1]:
                wrong = mistakes(text(kind, type).replace(f"{key}: ", f"{key}x: "))
                assert wrong == [f"{place}: unknown key '{key}x'; did you mean '{key}'?"]


@pytest.mark.parametrize(
    "kind, error",
    [
        ("actuator", ": is a NoneType without 'inputs'; an actuator has inputs, outputs, params, initial, flow,"
         " reflected_inertia and positions"),
        ("trajectory", ": is a NoneType without 'end'; a trajectory has end and sample"),
        ("controller", ": is a NoneType without 'inputs'; a controller has inputs, outputs, params,"
         " initial and update"),
        ("joint", ".type: load returned nothing; return a GeneralMotion of cosim.multibody.joints ({}:8 load)"),
        ("constraint", ".type: load returned nothing; return a ConstraintLaw of cosim.multibody.constraint_laws"
         " ({}:6 load)"),
    ],
)  # fmt: skip
def test_one_that_loads_something_else(kind, error, outside, tmp_path):
    code = PARTS[kind][1]
    code = code[: code.index("def load")] + code[code.index("def load") :].split("\n")[0] + "\n    return None\n"
    files = (tmp_path / "site" / "far_part.py", tmp_path / "parts" / "mine.py")
    for type, file in zip(outside(kind, code), files, strict=True):
        assert mistakes(text(kind, type)) == [PARTS[kind][3] + error.format(file)]


@pytest.mark.parametrize(
    "kind, old, new, error",
    [
        ("actuator", "return Ideal(params)", "x = Ideal(params)\n    x.outputs = {}\n    return x",
         "does not declare the output 'effort'; use ACTUATOR_OUTPUTS"),
        ("trajectory", '"velocity": self.v, ', "",
         "sample returns no 'velocity'; return position, velocity, acceleration and effort"),
        ("trajectory", "sample(self, t):", "sample(self, t):\n        return (0.0,) * 4",
         "sample returns a tuple; return a dict of position, velocity, acceleration and effort"),
        ("trajectory", '"effort": zero', '"effort": 0.0', "sample returns 'effort' of shape (); it is (1,)"),
        ("controller", 'inputs = {}', 'inputs = joint_signals(("velocity",), 3)',
         "declares the input 'velocity' of shape (3,); it is (1,)"),
    ],
)  # fmt: skip
def test_one_that_does_not_follow_its_contract(kind, old, new, error, outside):
    for type in outside(kind, PARTS[kind][1].replace(old, new)):
        assert mistakes(text(kind, type)) == [f"{PARTS[kind][3]}: {error}"]


@pytest.mark.parametrize("kind", SIMULATED)
def test_one_that_raises_when_it_is_loaded(kind, outside, tmp_path):
    code = PARTS[kind][1]
    at = code.index("def load")
    code = code[:at] + code[at:].split("\n")[0] + "\n    return {}['none']\n"
    files = (tmp_path / "site" / "far_part.py", tmp_path / "parts" / "mine.py")
    place = PARTS[kind][3] + (".type" if kind in ("joint", "constraint", "force law") else "")
    for type, file in zip(outside(kind, code), files, strict=True):
        line = code[:at].count("\n") + 2
        assert mistakes(text(kind, type)) == [f"{place}: cannot be set up: KeyError: 'none' ({file}:{line})"]


def test_a_family_of_drivers_in_one_module(outside):
    for type, name in zip(outside("driver", PARTS["driver"][1]), ("far", "mine"), strict=True):
        Path("rig.yaml").write_text(text("driver", type))
        rig = load_rig("rig.yaml")
        assert rig.spec.drivers[0].name == name and rig.plant.real == ("slide",)
        drivers = [group.driver.__class__.__name__ for group in rig.engine().hardware_manager.groups]
        assert drivers == ["SimDriver", "CanDriver"]
