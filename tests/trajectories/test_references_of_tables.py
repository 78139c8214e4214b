"""References of tables: how they begin, in every engine, and what is reported of them."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cosim import Rig, load_rig
from cosim.control.bumpless_start import BumplessStart
from cosim.core.errors import RunWarning
from cosim.core.types import Array
from cosim.rig.references import doubts_of_references
from tests.kit.engines import python_rows
from tests.kit.refusals import refusal

RIGS = Path(__file__).parents[2] / "rigs"
JOINTS = ("a", "b")
START, FIRST = np.array([0.0, 0.05]), np.array([0.4, -0.1])
BLEND, STEP = 0.5, 5e-3
TABLE = "t,a,b\n0,0.4,-0.1\n0.3,0.5,0.1\n1,0.2,-0.3\n1.5,0.1,0\n"
EFFORTS = "t,a,b\n0,0,0\n1,0.5,0.1\n"
AROUND: dict[str, dict[str, Any]] = {
    "plain": {},
    "feedforward": {"feedforward": {"file": "efforts.csv"}},
    "shaping": {"shaping": {"type": "zv", "frequency": 3}},
    "both": {"shaping": {"type": "zv", "frequency": 3}, "feedforward": {"file": "efforts.csv"}},
}
CONTROLLER = """
from cosim.plugin import COMMAND, FEEDBACK, REFERENCE, joint_signals, params
import numpy as np

COMPILED = {compiled}

@params
class Params:
    pass

class Follow:
    def __init__(self, params, n):
        self.params, self.inputs = params, joint_signals((*FEEDBACK, *REFERENCE), n)
        self.outputs = joint_signals(COMMAND, n)

    def initial(self):
        return {{}}

    def update(self, t, p, x, u):
        {python}
        zero = 0.0 * u["position"]
        effort = 100.0 * (u["reference_position"] - u["position"]) + 20.0 * (u["reference_velocity"] - u["velocity"])
        return {{}}, {{"position": zero, "velocity": zero, "effort": effort, "kp": zero, "kd": zero}}

def load(params, context):
    return Follow(params, len(context.joints))
"""


def rig_file(folder: Path, trajectory: Mapping[str, Any] = {}, table: str = TABLE, **sections: Any) -> Path:
    (folder / "way.csv").write_text(table)
    (folder / "efforts.csv").write_text(EFFORTS)
    inertia = {"mass": 1, "inertia": [1, 1, 1], "axis": [0, 0, 1]}
    bodies = [{"name": "l1", "joint": "a", "type": "continuous"}, {"name": "l2", "parent": "l1", "joint": "b"}]
    limits = {"limits": {"velocity": 3, "lower": -2, "upper": 2}}
    rig = {
        "mechanism": {"gravity": [0, 0, 0], "bodies": [body | inertia for body in bodies]},
        "joints": {"b": {"initial": {"position": float(START[1])}} | limits},
        "controllers": [
            {"name": "c", "type": "pid", "kp": 100, "ki": 0, "kd": 20,
             "trajectory": {"type": "waypoints", "file": "way.csv", **trajectory}}
        ],
        "schedule": {"step": STEP, "duration": 1.8, "blend": BLEND},
    }  # fmt: skip
    (folder / "rig.yaml").write_text(json.dumps(rig | sections))
    return folder / "rig.yaml"


def references(run: Mapping[str, Array], what: str = "position") -> Array:
    return np.column_stack([run[f"{joint}/reference_{what}"] for joint in JOINTS])


def fading(s: Array) -> Array:
    """From 1 to 0, with velocity and acceleration 0 at both ends."""
    s = np.clip(s, 0.0, 1.0)
    return 1.0 - s**3 * (10.0 - 15.0 * s + 6.0 * s**2)


@pytest.mark.parametrize("around", AROUND)
def test_a_reference_begins_where_the_rig_starts_and_fades_into_its_table(around: str, tmp_path: Path) -> None:
    """The distance to the table fades out as a quintic; nothing else is changed, its efforts not either."""
    path = rig_file(tmp_path, AROUND[around])
    run = load_rig(path).run()
    jumping = load_rig(rig_file(tmp_path, {"start": "jump", **AROUND[around]})).run()
    faded, table = references(run), references(jumping)
    np.testing.assert_allclose(table[0], FIRST, atol=1e-12)
    expected = table + (START - FIRST) * fading(run.t[:, None] / BLEND)
    np.testing.assert_allclose(faded, expected, atol=1e-12)
    np.testing.assert_allclose(faded[0], START, atol=1e-15)
    after = run.t >= BLEND
    for what in ("position", "velocity", "acceleration"):
        np.testing.assert_allclose(references(run, what)[after], references(jumping, what)[after], atol=1e-12)
    added = references(run, "velocity") - references(jumping, "velocity")
    slope = np.gradient((START - FIRST) * fading(run.t[:, None] / BLEND), STEP, axis=0)
    np.testing.assert_allclose(added[1:-1], slope[1:-1], atol=5e-3)
    for joint in JOINTS:
        if f"{joint}/reference_effort" in run:
            np.testing.assert_allclose(run[f"{joint}/reference_effort"], jumping[f"{joint}/reference_effort"])


@pytest.mark.parametrize("around", AROUND)
def test_every_engine_blends_alike(around: str, tmp_path: Path) -> None:
    path = rig_file(tmp_path, AROUND[around])
    rig = load_rig(path)
    run = rig.run()
    expected = references(run)
    np.testing.assert_allclose(references(load_rig(path, interpret=True).run()), expected, atol=1e-12)
    signals = [f"{joint}/{what}" for joint in JOINTS for what in ("reference_position", "position")]
    batch = rig.rollouts({"c.kp": [100.0, 50.0]}, keep="all", signals=signals)
    for name in signals:
        np.testing.assert_allclose(batch.samples[name][0], run[name], rtol=0.0, atol=1e-15)


@pytest.mark.parametrize("compiled", [True, False])
def test_a_controller_of_its_own_blends_alike(compiled: bool, tmp_path: Path) -> None:
    expected = references(load_rig(rig_file(tmp_path)).run())
    python = "" if compiled else 'float(u["position"][0])'
    (tmp_path / "follow.py").write_text(CONTROLLER.format(compiled=compiled, python=python))
    trajectory = {"type": "waypoints", "file": "way.csv"}
    own = [{"name": "c", "type": "follow.py", "trajectory": trajectory}]
    rig = load_rig(rig_file(tmp_path, controllers=own))
    np.testing.assert_allclose(references(rig.run()), expected, atol=1e-12)


def test_rollouts_blend_from_where_each_starts(tmp_path: Path) -> None:
    rig = load_rig(rig_file(tmp_path))
    starts = [0.0, 0.3, -0.6]
    batch = rig.rollouts(initial={"a/position": starts}, keep="all", signals=["a/reference_position"])
    for k, start in enumerate(starts):
        alone = load_rig(rig_file(tmp_path), [f"joints.a.initial.position={start}"]).run()
        np.testing.assert_allclose(batch.samples["a/reference_position"][k], alone["a/reference_position"], atol=1e-12)


@pytest.mark.parametrize("around", AROUND)
def test_motors_that_are_switched_on_begin_as_the_simulation_does(around: str, tmp_path: Path) -> None:
    """Once: from where they are measured, which is where the simulation starts."""
    rig = load_rig(rig_file(tmp_path, AROUND[around]))
    run = rig.run(0.9)
    rows = python_rows(rig, len(run.t))
    names = list(run.signals)
    columns = [names.index(f"{joint}/reference_position") for joint in JOINTS]
    np.testing.assert_allclose(rows[:, columns], references(run), atol=1e-12)


def test_a_blend_that_needs_longer_stays_within_the_limits(tmp_path: Path) -> None:
    """5 rad away, at most 3 rad/s."""
    far = "t,a,b\n0,0,1.9\n3,0,1.9\n5,0,1.9\n"
    sections = {"schedule": {"step": STEP, "duration": 5.5, "blend": 0.1}}
    path = rig_file(tmp_path, table=far, **sections)
    run = load_rig(path, ["joints.b.initial.position=-1.9"]).run()
    speed = np.abs(run["b/reference_velocity"]).max()
    assert 1.0 < speed <= 3.0 and np.abs(run["b/reference_position"]).max() <= 2.0
    assert run["b/reference_position"][0] == -1.9 and run["b/reference_position"][-1] == pytest.approx(1.9)


def test_a_prescribed_joint_is_where_its_table_is(tmp_path: Path) -> None:
    sections: dict[str, Any] = {
        "controllers": [],
        "joints": {"a": {"prescribed": {"type": "waypoints", "file": "way.csv"}}},
    }
    run = load_rig(rig_file(tmp_path, **sections)).run(0.1)
    assert run["a/position"][0] == pytest.approx(FIRST[0])


def test_a_rig_that_starts_at_its_table_is_not_blended(tmp_path: Path) -> None:
    starts = [f"joints.{joint}.initial.position={x}" for joint, x in zip(JOINTS, FIRST, strict=True)]
    rig = load_rig(rig_file(tmp_path), starts)
    start = BumplessStart.of(rig.tick_model._first_start, 2)
    assert not np.any(start.offset) and not np.any(start.drift)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RunWarning)
        rig.run(0.1)


def test_real_joints_plan_their_start_themselves(tmp_path: Path) -> None:
    """Their references are not blended before they are measured, and nothing is reported of the first row."""
    (tmp_path / "way.csv").write_text("t,base,shoulder,elbow\n0,0,0.1,0\n1,0,0.2,0\n")
    trajectory = json.dumps({"type": "waypoints", "file": str(tmp_path / "way.csv")})
    rigs = [
        load_rig(RIGS / f"{name}.yaml", [f"controllers.arm.trajectory={trajectory}"]) for name in ("arm_can", "arm_sim")
    ]
    starts = [BumplessStart.of(rig.tick_model._first_start, 3) for rig in rigs]
    assert [bool(np.any(start.offset)) for start in starts] == [False, True]
    reported = [[line for line in doubts_of_references(rig) if "blends into it" in line] for rig in rigs]
    assert [len(lines) for lines in reported] == [0, 1]


# --- what is reported ------------------------------------------------------------------------------

ODD: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "elsewhere": (TABLE, {}, {}),
    "jumps there": (TABLE, {"start": "jump"}, {}),
    "wraps": ("t,a,b\n0,0,0.05\n0.5,3.1,0.05\n1,-3.1,0.05\n1.5,-3,0.05\n", {}, {}),
    "in degrees": ("t,a,b\n0,0,0.05\n0.5,45,0.05\n1,90,0.05\n", {}, {}),
    "beyond limits": ("t,a,b\n0,0,0.05\n0.5,0,3\n1,0,0.05\n", {}, {}),
    "after the run": ("t,a,b\n0,0,0.05\n500,0,0.05\n1000,1,0.05\n", {}, {}),
    "after the run and back": ("t,a,b\n0,0,0.05\n5,0,0.05\n6,1,0.05\n7,0,0.05\n", {"between": "monotone"}, {}),
    "before the run": ("t,a,b\n-3,0,0.05\n-2,1,0.05\n-1,0,0.05\n", {}, {}),
    "guessed times": (
        "time,a,b\n1709633472.0,0,0.05\n1709633472.5,0.1,0.05\n1709633473.0,0.2,0.05\n", {}, {},
    ),
    "a row twice": ("t,a,b\n0,0,0.05\n0.5,0.1,0.05\n0.5,0.1,0.05\n1,0,0.05\n", {}, {}),
}  # fmt: skip


@pytest.mark.parametrize("odd", ODD)
def test_odd_references_are_reported_alike(odd: str, tmp_path: Path, command: Any, said: Any) -> None:
    """By `cosim check`, by a run of the command and by one in Python."""
    table, trajectory, sections = ODD[odd]
    path = rig_file(tmp_path, trajectory, table, **sections)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RunWarning)
        try:
            load_rig(path).run(None if odd.startswith("after the run") else 0.1)
        except Exception as error:
            assert "limit" in str(error)
    python = [
        str(warning.message)
        for warning in caught
        if "way.csv" in str(warning.message) or "reference" in str(warning.message)
    ]
    _, out, err = command("check", str(path))
    lines = [line.strip() for line in [*out.splitlines(), *err] if "warning" in line]
    first = min(python, key=len) if python else ""
    assert python and any(first in line.replace("  ", " ") for line in lines)
    said("\n".join(dict.fromkeys(python)))


CLOSE = {
    "1e-9 s apart": "t,a,b\n0,0,0.05\n0.5,0,0.06\n0.500000001,0,0.05\n1,0,0.05\n",
    "back": "t,a,b\n0,0,0.05\n0.5,0,0.06\n0.4,0,0.05\n1,0,0.05\n",
}


@pytest.mark.parametrize("table", CLOSE)
def test_rows_that_are_no_motion_are_refused(table: str, tmp_path: Path, said: Any) -> None:
    said(refusal(load_rig, rig_file(tmp_path, table=CLOSE[table])))


def wrapping(kind: str) -> dict[str, Any]:
    """Keys of each trajectory that has `wrap`, to 3.3 rad and on to -3 rad."""
    points = {"points": [[3.3, 0.05], [-3.0, 0.05]]}
    return {
        "waypoints": {"file": "way.csv"},
        "spline": points | {"times": [1.0, 2.0]},
        "time_optimal": points | {"max_acceleration": 5.0, "max_velocity": 2.0},
        "quintic": {"goal": [-3.0, 0.05], "duration": 2.0},
        "trapezoidal": {"goal": [-3.0, 0.05], "max_velocity": 2.0, "max_acceleration": 4.0},
        "minimum_jerk": {"via": [[3.3, 0.05]], "goal": [-3.0, 0.05], "duration": 2.0, "times": [1.0]},
    }[kind] | {"type": kind}


KINDS = ("waypoints", "spline", "time_optimal", "quintic", "trapezoidal", "minimum_jerk")
TURNS = "t,a,b\n0,2.9,0.05\n1,3.3,0.05\n2,-3,0.05\n"


@pytest.mark.parametrize("kind", KINDS)
def test_the_shorter_way_round(kind: str, tmp_path: Path) -> None:
    """From 2.9 rad: to -3 rad, which is 3.283 rad; without it back by nearly a turn."""
    ends = {}
    for wrap in ("keep", "shortest"):
        trajectory = wrapping(kind) | {"wrap": wrap}
        loop = {"name": "c", "type": "pid", "kp": 100, "ki": 0, "kd": 20, "trajectory": trajectory}
        rig: Rig = load_rig(rig_file(tmp_path, table=TURNS, controllers=[loop]), ["joints.a.initial.position=2.9"])
        reference = rig.tick_model.loops[0].trajectory
        ends[wrap] = reference.sample(reference.end)["position"][0]
    assert ends["keep"] == pytest.approx(-3.0) and ends["shortest"] == pytest.approx(-3.0 + 2.0 * np.pi)


@pytest.mark.parametrize("kind", KINDS)
def test_a_prismatic_joint_has_no_shorter_way(kind: str, tmp_path: Path) -> None:
    loop = {
        "name": "c",
        "type": "pid",
        "kp": 100,
        "ki": 0,
        "kd": 20,
        "trajectory": wrapping(kind) | {"wrap": "shortest"},
    }
    path = rig_file(tmp_path, table=TURNS, controllers=[loop])
    path.write_text(path.read_text().replace('"joint": "b"', '"joint": "b", "type": "prismatic"'))
    words = refusal(load_rig, path)
    assert words.endswith("controllers[0].trajectory.wrap: joint 'b' is prismatic and has no turns; take it out")
