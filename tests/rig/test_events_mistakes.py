"""What is said of events, stops, starts and files of one's own that are wrong: one line each, place and mend."""

import random
import re
from pathlib import Path

import pytest

from cosim import load_rig
from cosim.core.errors import CosimError, InputErrors
from tests.kit.refusals import raised
from tests.rig.test_mistakes import HEADS

HEAD = HEADS["events"]  # lines 1 to 11


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def rig(joints="rod: {}", *events):
    lines = "".join(f"  - {event}\n" for event in events)
    Path("rig.yaml").write_text(f"{HEAD}  {joints}\n" + (f"events:\n{lines}" if events else ""))
    return load_rig("rig.yaml")


@pytest.mark.parametrize(
    ("joints", "events"),
    [
        ("ball: {latched: true}", ["{do: unlatch, of: ball.rx, at: 1}", "{do: release, of: ball, at: 2}"]),
        ("bar: {latched: true}", ["{do: unlatch, of: bar, at: 1}"]),
        ("bar: {}", ["{do: unlatch, of: bar, at: 1}", "{do: latch, of: bar, at: 2}"]),
        ("bar: {}", ["{do: brake, of: ball, effort: 1, at: 1}", "{do: unbrake, of: ball, at: 2}"]),
    ],
)
def test_an_event_that_frees_what_may_be_held(joints, events):
    assert len(rig(joints, *events).spec.events) == len(events)


def test_a_run_that_cannot_go_on_ends_with_one_line(command):
    text = """
mechanism: {gravity: [0, 0, 0], bodies: [{name: a, type: prismatic, axis: [1, 0, 0], mass: 1 kg}]}
joints: {a: {initial: {velocity: 1}, stops: {lower: -1e-6, upper: 1e-6, restitution: 1}}}
"""
    Path("rig.yaml").write_text(text)
    code, _, err = command("run", "rig.yaml")
    assert code == 1
    assert err[-1].startswith(
        "rig.yaml: stopped at tick 1 (t = 0.001 s): events trigger each other without end at t = "
    )


LAW = """
from cosim.plugin import ops
from cosim.plugin import ConstraintLaw, ReactionSpec
from cosim.plugin import params
@params
class Params: pass
def load(params):
    return ConstraintLaw((ReactionSpec("moment", "N*m", "rad"),), lambda frames, q, t: [{}])
"""
JOINT = """
from cosim.plugin import ops
from cosim.plugin import GeneralMotion
from cosim.plugin import params
import numpy as np
@params
class Params: pass
def load(params):
    return GeneralMotion(("s",), ("m",), lambda q, t: (np.eye(3), ops.array([{}, 0.0, q[0]])))
"""
LAWFUL = """\
mechanism:
  bodies:
    - {name: a, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -1], inertia: [1, 1, 1]}
    - {name: b, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -1], inertia: [1, 1, 1], parent: base}
  constraints: [{name: mine, type: own.py, joints: [a, b]}]
joints: {a: {initial: {position: 0.5}}}
schedule: {duration: 2}
"""
GENERAL = """\
mechanism:
  bodies:
    - {name: a, type: own.py, mass: 1 kg, inertia: [1, 1, 1]}
schedule: {duration: 2}
"""


FAILING = {
    "on numbers": (LAWFUL, LAW.format("1 / 0")),
    "on symbols": (LAWFUL, LAW.format("q[0] if q[0] > 0 else q[1]")),
    "the nearest solution is where the root begins, with an infinite slope": (
        LAWFUL,
        LAW.format("ops.sqrt(0.4 - q[0]) - q[1]"),
    ),
    "no solution": (LAWFUL, LAW.format("q[0] * q[0] + 1")),
    "it swings to where the root has no value": (LAWFUL, LAW.format("q[0] - ops.sqrt(0.3 - q[1])")),
    "it falls to where the curve has no value": (GENERAL, JOINT.format("ops.sqrt(1.0 + q[0])")),
}


@pytest.mark.parametrize("what", FAILING)
def test_files_that_fail(said, what):
    text, own = FAILING[what]
    Path("own.py").write_text(own)
    Path("rig.yaml").write_text(text)
    said(raised(CosimError, lambda: load_rig("rig.yaml").run()), r"tick \d+ \(t = \S+ s\)", r"\(position \S+ ")


VALUES = [
    "3", "-1", "1e300", "''", "null", "true", "rod", "cart", "ball", "mesh", "nothing", "[]", "{}", "[1, 2, 3]", ".nan",
    "[rod, cart]", "[rod, rod]", "base", "2 m", "10 deg", "revolute", "free", "spherical", "distance", "gear",
    "rolling", "latch", "brake", "release", "{signal: rod/position, above: 0}", "{signal: 3}", "{xyz: [0, 0, 1]}",
    "[[0, 0, 0], [1, 0, 0]]", "{position: 1}", "{position: [0, 0, 0, 1]}", "{lower: -1, upper: 1}", "x.py", "0",
    "[0, 0, 1]", "{rpy: 3}",
]  # fmt: skip
KEYS = {
    "events": "do of name at when effort efforts times over",
    "loops": "name type parent child origin child_origin axis damping coordinates limits pitch",
    "constraints": "name type between joints length points body polynomial ratio on radius axle normal plane offset",
    "springs": "name between points stiffness damping unloaded_length",
    "joints": "initial stops latched limits prescribed actuator encoder",
}


@pytest.mark.parametrize("section", KEYS)
def test_garbage_is_distinguished_from_input(section):
    """Whatever stands there is read, or refused with lines that have a place; nothing else is ever raised."""
    dice = random.Random(section)
    refused = 0
    for _ in range(25):
        keys = dice.sample(KEYS[section].split(), dice.randint(1, 5))
        entry = "{" + ", ".join(f"{key}: {dice.choice(VALUES)}" for key in keys) + "}"
        entry = dice.choice(VALUES) if dice.random() < 0.1 else entry
        if section == "joints":
            text = f"{HEAD}  {dice.choice(['rod', 'bar', 'ball', 'tip', 'ball.rx', 'all'])}: {entry}\n"
        elif section == "events":
            text = f"{HEAD}  rod: {{}}\nevents:\n  - {entry}\n"
        else:
            kept = HEAD.replace("  constraints:\n    - {name: mesh, type: gear, joints: [rod, cart], ratio: 2}\n", "")
            text = kept.replace("joints:\n", f"  {section}:\n    - {entry}\n")
        Path("rig.yaml").write_text(text)
        try:
            load_rig("rig.yaml")
        except InputErrors as errors:
            refused += 1
            assert all(re.match(r"rig\.yaml(:\d+)? .+: .+", line) for line in str(errors).splitlines())
        except CosimError as error:
            refused += 1
            assert re.match(r"rig\.yaml(:\d+)? .+: [^\n]+$", str(error))
    assert refused > 12
