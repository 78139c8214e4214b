"""What rigs record of the forces in joints and constraints: values, signs, names, and what the summary says of them."""

import re

import numpy as np
import pytest

from cosim.cli.run_summary import structure_lines
from cosim.core.errors import InputErrors
from cosim.rig.rig import Rig
from cosim.rig.run.run import StoppedRun
from cosim.simulation.plant.recorded_reactions import OF_A_CONSTRAINT
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
from cosim.plugin import ConstraintLaw, ReactionSpec, ops, param, params
@params
class Params:
    scale: float = param(default=1.0)
    growth: float = param(default=0.0)
    again: float = param(default=0.0)
    kind: str = param(default="push")
def load(params):
    def factor(q):
        return params.scale * ops.exp(params.growth * q[0])
    def push(frames, q, t):
        rows = [factor(q) * (frames[1].position[1] - frames[0].position[1] + 0.3 * q[0])]
        return rows + [params.again * factor(q) * rows[0]] * (params.again > 0.0)
    def lift(frames, q, t):
        return [factor(q) * (frames[1].position[1] - frames[0].position[1])]
    def slip(frames, q, v, t):
        return [factor(q) * (frames[1].linear[1] - frames[0].linear[1] + 0.3 * v[0])]
    def turn(frames, q, t):
        a, b = frames[0].rotation, frames[1].rotation
        return [factor(q) * (a[1, 0] * b[0, 0] - a[0, 0] * b[1, 0] - 0.5 * q[0])]
    force, moment = ReactionSpec("push", "N", "m"), ReactionSpec("push", "N*m", "rad")
    rows = (force, force._replace(name="more")) if params.again else (force,)
    return {
        "push": ConstraintLaw(rows, push),
        "slip": ConstraintLaw((force._replace(residual_unit="m/s"),), None, slip),
        "turn": ConstraintLaw((moment,), turn),
        "kN": ConstraintLaw((ReactionSpec("push", "kN", "mm"),), push),
        "turned by a force": ConstraintLaw((force._replace(length=0.25),), turn),
        "lift": ConstraintLaw((force,), lift),
        "lifted by a moment": ConstraintLaw((moment._replace(length=0.25),), lift),
    }[params.kind]
"""


@pytest.fixture
def level(tmp_path, monkeypatch):
    """A rig of two legs held level by a law, of these parameters."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "level.py").write_text(LAW)

    def made(between=("a", "b"), **params):
        law = {"name": "level", "type": "level.py", "between": list(between), "points": [[0.2, 0, 0], [0.2, 0, 0]]}
        law |= {"joints": ["c"], "params": params}
        return rig({"bodies": LEGS, "constraints": [law]}, {"step": "1 ms", "duration": "50 ms"})

    return made


SCALES = {
    "doubled": {"scale": 2.0},
    "small": {"scale": 1e-3},
    "varying": {"scale": 3.0, "growth": 1.5},
}


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", [{}, {"kind": "slip"}, {"kind": "turn"}, {"again": 2.5}], ids=str)
def test_what_a_law_in_python_exerts_does_not_depend_on_its_scale(level, kind, scale):
    """Its rows, holonomic or not, of forces and of moments, also where they depend on each other."""
    one, scaled = level(**kind).run(), level(**kind, **SCALES[scale]).run()
    names = [name for name in one.signals if name.startswith("level") and name.split("/")[1] not in OF_A_CONSTRAINT]
    assert {name.split("/")[0] for name in names} == {"level", "level.a", "level.b", "level.c"}
    for name in names:
        np.testing.assert_allclose(scaled[name], one[name], rtol=1e-10, atol=1e-10)
    ours, theirs = (run.summary["constraints"]["level"] for run in (one, scaled))
    assert ours["largest"].keys() == theirs["largest"].keys()
    assert theirs["reaction_peak"] == pytest.approx(ours["reaction_peak"], rel=1e-10)


def test_rows_of_a_law_in_python_are_what_they_exert(level):
    """The largest force or moment on a link or dof, above 0 where the residual grows; of rows that say the same, half
    each."""
    run = level().run()
    assert run.units["level/push"] == "N" and np.abs(run["level/push"]).min() > 0.1
    assert (np.sign(run["level.b/force_y"]) == np.sign(run["level/push"])).all()
    np.testing.assert_allclose(run["level.b/resultant_force"], np.abs(run["level/push"]), rtol=1e-10)
    np.testing.assert_allclose(run["level.c/effort"], 0.3 * run["level/push"], rtol=1e-9)
    np.testing.assert_allclose(level(scale=-4.0).run()["level/push"], -run["level/push"], rtol=1e-10)
    turned = level(kind="turn").run()
    assert turned.units["level/push"] == "N*m" and np.abs(turned["level/push"]).min() > 1e-3
    sizes = np.maximum(turned["level.b/resultant_moment"], np.abs(turned["level.c/effort"]))
    np.testing.assert_allclose(np.abs(turned["level/push"]), sizes, rtol=1e-10)
    both = level(again=2.5).run()
    for row in ("push", "more"):
        np.testing.assert_allclose(both[f"level/{row}"], 0.5 * run["level/push"], rtol=1e-9)
    thousands = level(kind="kN", scale=1e3).run()
    assert thousands.units["level/push"] == "kN"
    np.testing.assert_allclose(1e3 * thousands["level/push"], run["level/push"], rtol=1e-9)


def test_a_row_in_another_unit_than_it_exerts_has_a_length(level):
    """A force on the arm `length`; of a moment written as a force and the other way round."""
    moment, force = (level(kind=kind).run()["level/push"] for kind in ("turn", "lift"))
    for scale in (1.0, 3.0):
        arm = level(kind="turned by a force", scale=scale).run()
        assert arm.units["level/push"] == "N"
        np.testing.assert_allclose(0.25 * arm["level/push"], moment, rtol=1e-10)
        arm = level(kind="lifted by a moment", scale=scale).run()
        assert arm.units["level/push"] == "N*m"
        np.testing.assert_allclose(arm["level/push"], 0.25 * force, rtol=1e-10, atol=1e-12)
