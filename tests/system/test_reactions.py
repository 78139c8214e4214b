"""What rigs record of the forces in joints and constraints: values, signs, names, and what the summary says of them."""

import re

import numpy as np
import pytest

from cosim.cli.run_summary import structure_lines
from cosim.core.errors import InputErrors
from cosim.rig.rig import Rig
from cosim.rig.run.run import StoppedRun
from tests.kit.refusals import raised

G = 9.81
STEP = {"step": "0.1 ms", "duration": "1 ms"}
WHEEL = {"mass": 1.0, "inertia": [0.1, 0.1, 0.1]}


def rig(mechanism, schedule=STEP, **sections):
    return Rig.from_dict({"mechanism": {"gravity": [0, -G, 0], **mechanism}, "schedule": schedule, **sections})


def bead(steepness, x, **sections):
    """On the wire y = steepness x²."""
    body = {"name": "bead", "type": "planar", "mass": 1.0, "inertia": [1, 1, 1]}
    wire = {"name": "wire", "type": "curve", "body": "bead", "polynomial": [0, 0, steepness]}
    joints = {"bead.x": {"initial": {"position": x}}, "bead.y": {"initial": {"guess": steepness * x * x}}}
    return rig({"bodies": [body], "constraints": [wire]}, joints=joints, **sections)


@pytest.mark.parametrize(("steepness", "x"), [(5.0, -1.0), (0.78125, -1.0), (-0.5, 0.3)])
def test_the_force_of_a_wire_on_a_bead_is_normal_to_it(steepness, x):
    run = bead(steepness, x).run()
    slope = 2 * steepness * x
    assert run["wire/force"][0] == pytest.approx(G / np.hypot(1.0, slope), rel=1e-12)
    pushed = run["bead.x/acceleration"][0], run["bead.y/acceleration"][0] + G
    assert run["wire/force"][0] == pytest.approx(np.hypot(*pushed), rel=1e-12)


def test_a_wire_that_breaks_does_so_at_its_normal_force():
    """By the energy of the bead: N = m (g cos + v² κ)."""
    bound = 30.0
    event = {"do": "release", "of": "wire", "when": {"signal": "wire/force", "above": bound}}
    run = bead(5.0, -1.0, schedule={"step": "0.1 ms", "duration": "1 s"}, events=[event]).run()
    (broken,) = run.summary["events"]
    x = np.interp(broken["t_s"], run.t, run["bead.x/position"])
    slope, squared = 10.0 * x, 2 * G * 5.0 * (1.0 - x * x)
    assert G / np.hypot(1.0, slope) + squared * 10.0 / np.hypot(1.0, slope) ** 3 == pytest.approx(bound, rel=1e-6)
    assert run["wire/force"].max() <= bound and not run["wire/force"][run.t > broken["t_s"]].any()


def test_violation_is_the_distance_from_the_curve():
    """To first order, a hundredth of a millimetre beside a slope of 10; nothing keeps the bead on the wire."""
    loose = rig(
        {
            "bodies": [{"name": "bead", "type": "planar", "mass": 1.0, "inertia": [1, 1, 1]}],
            "constraints": [{"name": "wire", "type": "curve", "body": "bead", "polynomial": [0, 10]}],
        }
    )
    residual, _ = loose.plant.model.equations.constraint_violation(np.array([0.0, 1e-4, 0.0]), np.zeros(3))
    np.testing.assert_allclose(residual, [1e-4 / np.sqrt(101.0)], rtol=1e-12)


@pytest.mark.parametrize("height", [-0.5, 0.5])
def test_a_rod_pulls_what_hangs_and_pushes_what_stands(height):
    body = {"name": "mass", "type": "planar", "mass": 2.0, "inertia": [1, 1, 1], "origin": {"xyz": [0, height, 0]}}
    rod = {"name": "rod", "type": "distance", "between": ["base", "mass"], "length": 0.5}
    run = rig({"bodies": [body], "constraints": [rod]}).run()
    assert run["rod/force"][0] == pytest.approx(2.0 * G * np.sign(height), rel=1e-12)


def test_the_effort_of_a_gear_acts_on_its_first_joint():
    bodies = [{"name": name, "parent": "base", **WHEEL} for name in ("driver", "wheel")]
    bodies[0]["com"] = [0.2, 0, 0]
    mesh = {"name": "mesh", "type": "gear", "joints": ["wheel", "driver"], "ratio": -0.5}
    run = rig({"bodies": bodies, "constraints": [mesh]}).run()
    assert run["mesh/effort"][0] == pytest.approx(0.1 * run["wheel/acceleration"][0], rel=1e-12)
    load = 0.14 * run["driver/acceleration"][0] + 0.2 * G
    assert 0.5 * run["mesh/effort"][0] == pytest.approx(load, rel=1e-12)  # −ratio · effort on the second one


LEGS = [
    {"name": "a", "mass": 1.0, "com": [0.1, 0, 0], "inertia": [0.01, 0.01, 0.01]},
    {"name": "c", "origin": {"xyz": [0.2, 0, 0]}, "mass": 2.0, "com": [0.25, 0, 0], "inertia": [0.02, 0.02, 0.02]},
    {"name": "b", "parent": "base", "origin": {"xyz": [0.5, 0, 0]}, "mass": 1.0, "com": [0.1, 0, 0]}
    | {"inertia": [0.01, 0.01, 0.01]},
]


def four_bar(pin, **sections):
    ends = {"parent": "b", "child": "c", "origin": {"xyz": [0.2, 0, 0]}, "child_origin": {"xyz": [0.5, 0, 0]}}
    joints = {"a": {"initial": {"position": 0.5, "velocity": 2.0}}}
    joints |= {"c": {"initial": {"guess": -0.5}}, "b": {"initial": {"guess": 0.5}}}
    return rig({"bodies": LEGS, "loops": [{"name": "pin", **ends, **pin}], **sections}, joints=joints)


def test_a_loop_joint_has_the_same_wrench_with_coordinates_and_without():
    """With them it is a joint of the tree, and its child is cut into two bodies."""
    cut, kept = four_bar({}).run(), four_bar({"coordinates": True}).run()
    for what in ("force_x", "force_y", "resultant_force"):
        np.testing.assert_allclose(kept[f"pin/{what}"], cut[f"pin/{what}"], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(kept["pin/moment_z"], 0.0, atol=1e-8)


def test_the_joint_behind_a_loop_and_the_loop_carry_the_body_between_them():
    """The coupler of a four-bar: both wrenches, gravity and its motion, along the axes of the ground."""
    run = four_bar({}, reactions=["c"]).run()
    angle = run["a/position"] + run["c/position"]
    total = np.zeros((len(run.t), 2))
    for owner, sign, turned in (("c", 1.0, run["a/position"]), ("pin", 1.0, run["b/position"])):
        x, y = run[f"{owner}/force_x"], run[f"{owner}/force_y"]
        c, s = np.cos(turned), np.sin(turned)
        total += sign * np.column_stack([c * x - s * y, s * x + c * y])
    spins = run["a/velocity"], run["a/velocity"] + run["c/velocity"]
    accelerations = run["a/acceleration"], run["a/acceleration"] + run["c/acceleration"]
    expected = np.column_stack([np.zeros(len(run.t)), np.full(len(run.t), G)])
    for arm, at, spin, a in zip((0.2, 0.25), (run["a/position"], angle), spins, accelerations, strict=True):
        c, s = np.cos(at), np.sin(at)
        expected += arm * np.column_stack([-a * s - spin**2 * c, a * c - spin**2 * s])
    np.testing.assert_allclose(total, 2.0 * expected, rtol=1e-9, atol=1e-8)


ARM = [
    {"name": "arm", "joint": "shoulder", "mass": 2.0, "com": [0.2, 0, 0], "inertia": [0.01, 0.03, 0.03]},
    {"name": "tool", "joint": "flange", "type": "fixed", "origin": {"xyz": [0.4, 0, 0]}, "mass": 1.0}
    | {"com": [0.05, 0, 0], "inertia": [0.001, 0.001, 0.001]},
    {"name": "ball", "type": "free", "parent": "base", **WHEEL},
]


def test_a_fixed_joint_that_is_named_says_what_it_holds():
    held = {"shoulder": {"latched": True}}
    plain, named = (rig({"bodies": ARM, **more}, joints=held).run() for more in ({}, {"reactions": ["flange"]}))
    np.testing.assert_allclose(named["shoulder/holding_effort"], plain["shoulder/holding_effort"], rtol=1e-12)
    found = [named[f"flange/{what}"][-1] for what in ("force_x", "force_y", "force_z", "moment_z")]
    np.testing.assert_allclose(found, [0.0, G, 0.0, 0.05 * G], atol=1e-12)


def test_all_names_joints_that_bear_loads(said):
    run = rig({"bodies": ARM, "reactions": "all"}).run()
    assert list(run.summary["reactions"]) == ["shoulder"]
    said("\n".join(structure_lines(run.summary, run.rig.units)))


def test_the_summary_has_the_largest_resultant_and_when_it_was(said):
    run = four_bar({}, reactions=["a", "c"]).run()
    force = np.hypot(run["pin/force_x"], run["pin/force_y"])
    (name, largest), *_ = run.summary["constraints"]["pin"]["largest"].items()
    assert (name, largest["peak"]) == ("pin/resultant_force", pytest.approx(force.max(), rel=1e-12))
    assert largest["t_s"] == pytest.approx(run.t[force.argmax()])
    lines = [line for line in structure_lines(run.summary, run.rig.units) if "note" not in line]
    said("\n".join(re.sub(r": \S+ m,", ": … m,", line) for line in lines))


@pytest.mark.parametrize("interpret", [False, True])
def test_a_joint_that_breaks_at_its_resultant(interpret):
    """A latch lets go when the joint above it carries a force: both engines find the same instant."""
    event = {"do": "unlatch", "of": "c", "when": {"signal": "a/resultant_force", "above": 45.0}}
    made = rig(
        {"bodies": LEGS[:2], "reactions": "all"},
        {"step": "1 ms", "duration": "0.5 s"},
        joints={"a": {"initial": {"position": 0.0}}, "c": {"latched": True}},
        events=[event],
    )
    run = (Rig(made.spec, True) if interpret else made).run()
    found = run.summary["events"][0]
    before = run["a/resultant_force"][run.t < found["t_s"]]
    assert before.max() < 45.0 < before.max() + 1.0


@pytest.mark.parametrize("action", ["stop", "warn"])
@pytest.mark.parametrize("limit", [{"reaction_force": 40.0}, {"reaction_moment": 6.0}], ids=str)
def test_a_limit_of_what_a_joint_transmits(said, limit, action):
    """Of a pendulum of two links, the first one latched for the limit of the moment. The run ends with the first tick
    beyond the limit."""
    (key, bound), what = *limit.items(), "resultant_" + next(iter(limit)).removeprefix("reaction_")
    joints = {"a": {"initial": {"position": 0.0}, "limits": {**limit, "actions": {key: action}}}}
    joints["a"]["latched"] = key == "reaction_moment"
    made = rig({"bodies": LEGS[:2], "reactions": ["a"]}, {"step": "1 ms", "duration": "0.3 s"}, joints=joints)
    if action == "stop":
        stopped = raised(StoppedRun, made.run)
        sizes = stopped.run[f"a/{what}"]
        assert sizes[:-1].max() <= bound < sizes[-1]
        said(str(stopped))
    else:
        run = made.run()
        sizes = run[f"a/{what}"]
        (counts,) = run.summary["guard"]["a"].values()
        assert counts["ticks"] == pytest.approx((sizes > bound).sum(), abs=1)
        said(counts["what"])


@pytest.mark.parametrize("reactions", [["shoulder", "flnge"], "flange", 3, {"flange": 1}], ids=str)
def test_mistakes(said, reactions):
    said(str(raised(InputErrors, rig, {"bodies": ARM, "reactions": reactions})))


LAW = """
from cosim.plugin import ConstraintLaw, ReactionSpec, param, params
@params
class Params:
    scale: float = param(default=1.0)
def load(params):
    def residual(frames, q, t):
        return [params.scale * (frames[1].position[1] - frames[0].position[1] + 0.3 * q[0])]
    return ConstraintLaw((ReactionSpec("push", "N", "m"),), residual)
"""


def test_what_a_law_in_python_exerts_does_not_depend_on_its_scale(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "level.py").write_text(LAW)

    def made(scale):
        law = {"name": "level", "type": "level.py", "between": ["a", "b"], "points": [[0.2, 0, 0], [0.2, 0, 0]]}
        law |= {"joints": ["c"], "params": {"scale": scale}}
        return rig({"bodies": LEGS, "constraints": [law]}).run()

    one, scaled = made(1.0), made(-4.0)
    np.testing.assert_allclose(-4.0 * scaled["level/push"], one["level/push"], rtol=1e-9)
    signals = [name for name in one.signals if name.startswith("level.")]
    assert {name.split("/")[0] for name in signals} == {"level.a", "level.b", "level.c"}
    assert np.abs(one["level.b/resultant_force"]).min() > 0.1
    for name in signals:
        np.testing.assert_allclose(scaled[name], one[name], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(one["level.c/effort"], 0.3 * one["level/push"], rtol=1e-9)
    assert (
        one.summary["constraints"]["level"]["largest"].keys()
        == scaled.summary["constraints"]["level"]["largest"].keys()
    )
