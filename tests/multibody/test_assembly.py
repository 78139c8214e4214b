"""Assembly of mechanisms with loops: positions, velocities, branches, errors."""

import numpy as np
import pytest

from cosim.core.errors import InputError
from cosim.mechanics.multibody import assembly
from tests.kit.refusals import raised
from tests.multibody.assembled import FOUR_BAR, OUT_OF_PLANE, folder, mistake, redundant, rig, start

__all__ = ["folder"]


WRIST = """\
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {name: A, axis: [1, 0, 0], mass: 1 kg, inertia: [0.1, 0.1, 0.1]}
    - {name: B, axis: [0, 1, 0], mass: 1 kg, inertia: [0.1, 0.1, 0.1]}
    - {name: C, axis: [0, 0, 1], mass: 1 kg, com: [0.1, 0, 0], inertia: [0.1, 0.1, 0.1]}
  loops:
    - {name: hinge, type: revolute, parent: base, child: C}
"""
BODY = """\
mechanism:
  bodies:
    - {name: body, joint: b, type: free, mass: 1 kg, inertia: [0.1, 0.1, 0.1], com: [0.1, 0, 0]}
  loops:
    - {name: pin, type: TYPE, parent: base, child: body}
"""
THREAD = """\
mechanism:
  bodies:
    - {name: spindle, mass: 1 kg, inertia: [0.001, 0.001, 0.002]}
    - {name: table, type: prismatic, parent: base, axis: [0, 0, 1], mass: 5 kg}
  loops:
    - {name: thread, type: screw, pitch: 10 mm, parent: spindle, child: table}
joints: {spindle: {initial: {position: 180 deg}}, table: {initial: {position: 0}}}
"""
GEARS = """\
mechanism:
  bodies:
    - {name: a, mass: 1 kg, inertia: [1, 1, 1]}
    - {name: b, parent: base, mass: 1 kg, inertia: [1, 1, 1]}
  constraints: [{name: mesh, type: gear, joints: [a, b], ratio: 2}]
"""
RODS = """\
mechanism:
  bodies:
    - {name: a, mass: 1 kg, com: [0.2, 0, 0], inertia: [1, 1, 1]}
    - {name: b, parent: base, mass: 1 kg, com: [0.2, 0, 0], inertia: [1, 1, 1]}
  constraints: [{name: rod, type: distance, between: [a, b], points: [[1, 0, 0], [1, 0, 0]], length: 0.5}]
"""
ROD = """\
mechanism:
  bodies: [{name: a, type: prismatic, axis: [1, 0, 0], mass: 1 kg}]
  constraints: [{name: rod, type: distance, between: [base, a], length: 2}]
"""
DISK = """\
mechanism:
  bodies: [{name: disk, type: free, mass: 1 kg, inertia: [1, 1, 1]}]
  constraints: [{name: roll, type: rolling, body: disk, axle: [0, 0, 1], radius: 0.3}]
"""


def test_the_guess_chooses_the_branch():
    """A parallelogram, and the same bars crossed."""
    given = "joints.A.initial.position=1"
    straight, _ = start(FOUR_BAR, given, "joints.B.initial.guess=-1", "joints.C.initial.guess=1")
    np.testing.assert_allclose(straight, [1, -1, 1], atol=1e-12)
    crossed, _ = start(FOUR_BAR, given, "joints.B.initial.guess=-2.5", "joints.C.initial.guess=-2.5")
    assert crossed[2] < -2
    ends = [0.4 * np.exp(1j * q[0]) + 0.5 * np.exp(1j * (q[0] + q[1])) for q in (straight, crossed)]
    assert abs(ends[1] - 0.5) == pytest.approx(0.4) == abs(ends[0] - 0.5)


def test_initial_positions_are_kept_and_loops_close_without_them():
    given = "joints.A.initial.position=1", "joints.C.initial.position=1", "joints.B.initial.guess=-0.8"
    np.testing.assert_allclose(start(FOUR_BAR, *given)[0], [1, -1, 1], atol=1e-12)
    q, v = start(FOUR_BAR, *(f"joints.{name}.initial.guess={at}" for name, at in (("A", 0.9), ("B", -0.8), ("C", 1.1))))
    assert abs(0.4 * np.exp(1j * q[0]) + 0.5 * np.exp(1j * (q[0] + q[1])) - 0.5 - 0.4 * np.exp(1j * q[2])) < 1e-10
    assert not v.any()


def test_positions_that_are_given_still_move():
    """Initial values do not hold later: with A driven C follows."""
    text = FOUR_BAR.replace(
        "schedule:", "joints: {A: {prescribed: {type: quintic, goal: 1.3, duration: 0.2}}}\nschedule:"
    )
    text = text.replace(
        "A: {pre", "C: {initial: {position: 1}}, B: {initial: {position: -1}}, A: {initial: {position: 1}, pre"
    )
    assert redundant(text) == OUT_OF_PLANE
    run = rig(text).run()
    np.testing.assert_allclose(run["C/position"], run["A/position"], atol=1e-9)


def test_velocities_follow():
    q, v = start(FOUR_BAR, "joints.A.initial.position=1", "joints.C.initial.guess=1", "joints.A.initial.velocity=2")
    np.testing.assert_allclose(v, [2, -2, 2] if q[2] > 0 else v, atol=1e-12)
    assert v[0] == 2


A, B, C = (f"joints.{name}.initial" for name in "ABC")
MISTAKES = {
    "lengths that do not fit": (FOUR_BAR.replace("child_origin: {xyz: [0.5", "child_origin: {xyz: [2.5"),),
    "positions that do not fit": (FOUR_BAR, f"{A}.position=1", f"{C}.position=-1"),
    "velocities that do not fit": (
        FOUR_BAR,
        f"{A}.position=1",
        f"{A}.velocity=1",
        f"{B}.guess=-1",
        f"{C}.guess=1",
        f"{B}.velocity=5",
    ),
    "a singular configuration": (FOUR_BAR, f"{A}.position=0"),
    "rows that are redundant": (FOUR_BAR, f"{A}.position=1", f"{C}.guess=1", "mechanism.loop_closure.redundant=refuse"),
    "a rod that cannot close": (ROD + "joints: {a: {initial: {position: 0}}}\n",),
    "gears that cannot close": (GEARS + "joints: {a: {initial: {position: 1}}, b: {initial: {position: 1}}}\n",),
    "a disk that lies flat": (DISK,),  # it touches the plane everywhere
    # where the points meet, the distance has no derivative: no row would hold them together
    **{f"points at {length}": (RODS.replace("0.5", length),) for length in ("0", "-1 mm", "1e-12")},
    # closed on the wrong branch only
    **{
        f"{kind} half a turn off": (
            BODY.replace("TYPE", kind) + f"joints: {{b: {{initial: {{position: [0, 0, 0, {turned}]}}}}}}\n",
        )
        for kind, turned in {
            "fixed": "1, 0, 0, 0",
            "prismatic": "0, 0, 1, 0",
            "revolute": "1, 0, 0, 0",
            "cylindrical": "0, 1, 0, 0",
            "planar": "0, 1, 0, 0",
        }.items()
    },
    "a thread half a turn off": (THREAD,),
    "a pin half a turn off": (
        FOUR_BAR.replace("child_origin: {xyz: [0.5, 0, 0]", "child_origin: {xyz: [0.5, 0, 0], rpy: [180 deg, 0, 0]"),
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_an_initial_state_that_does_not_exist(case, said):
    line = mistake(*MISTAKES[case])
    assert "mechanism.loop_closure.redundant" in line if "redundant" in case else line.startswith("rig.yaml:")
    said(line)


@pytest.mark.parametrize("guess", ["110 deg", "180 deg", "-2"])
def test_no_loop_closes_on_the_wrong_branch(guess):
    (a, b, _), _ = start(WRIST + f"joints: {{A: {{initial: {{guess: {guess}}}}}}}\n")
    assert np.cos(a) * np.cos(b) == pytest.approx(1.0)  # where the axis of C goes


def test_a_revolute_loop_turns_freely_about_its_axis():
    q, _ = start(BODY.replace("TYPE", "revolute") + "joints: {b: {initial: {position: [0, 0, 0, 0, 0, 1, 0]}}}\n")
    np.testing.assert_allclose(np.abs(q[:3]), 0.0, atol=1e-12)


def test_points_at_a_distance_that_coincide_at_the_guesses_are_moved_apart():
    assert abs(start(ROD)[0][0]) == pytest.approx(2.0)
    a, b = start(RODS)[0]
    assert abs(a) == pytest.approx(np.arcsin(0.25)) and b == pytest.approx(-a)


@pytest.mark.parametrize("prescribed", [("a", "b"), ("a",)])
def test_motions_that_contradict_a_constraint(prescribed, said):
    model, kept = rig(GEARS).plant.full_model, np.ones(2, dtype=bool)
    given = model, np.zeros(2), np.ones(2), kept, kept
    said(raised(InputError, assembly.find_consistent_state, *given, prescribed=prescribed).what)


def test_reactions_are_along_the_axis_and_the_x_of_the_frame():
    text = BODY.replace("TYPE", "revolute, axis: [0, 1, 0]").replace("com: [0.1, 0, 0]", "com: [0, 0, -0.1]")
    run = rig(text + "schedule: {duration: 0.01}\n").run()
    forces = [run[f"pin/force_{axis}"][-1] for axis in "xyz"]
    np.testing.assert_allclose(forces, [0, -9.81, 0], atol=1e-9)  # x is the frame's, z its y


def test_rolling_on_a_plate_that_moves():
    text = """\
mechanism:
  bodies:
    - {name: plate, type: prismatic, axis: [1, 0, 0], mass: 2 kg}
    - {name: disk, type: free, parent: base, mass: 1 kg, inertia: [0.005, 0.01, 0.005]}
  constraints:
    - {name: roll, type: rolling, body: disk, axle: [0, 1, 0], radius: 10 cm, on: plate}
joints:
  plate: {initial: {velocity: 1}}
  disk: {initial: {position: [0, 0, 0.1, 0, 0, 0, 1], velocity: [1, 0, 0, 0, 0, 0]}}
"""
    assert start(text)[1].tolist() == [1, 1, 0, 0, 0, 0, 0]  # lies on it and is carried along
    assert "contradict 'roll' by 2 m/s" in mistake(text.replace("velocity: [1,", "velocity: [3,"))


def test_the_condition_number_near_a_singular_configuration():
    """The frame of the pin is turned, so that both rows are there and nearly the same."""
    text = FOUR_BAR.replace(
        "child: B, origin: {xyz: [0.4, 0, 0]}", "child: B, origin: {xyz: [0.4, 0, 0], rpy: [0, 0, 0.5]}"
    )
    at = [f"joints.{name}.initial.position={sign}e-9" for name, sign in zip("ABC", (1, -1, 1), strict=True)]
    number = float(mistake(text, *at).split("condition number of ")[1].split(";")[0])
    assert 1e8 < number < 1e10
    far = [text.replace("e-9", "e-3") for text in at]
    assert redundant(text, *far) == OUT_OF_PLANE


@pytest.mark.parametrize("size", [1.0, 1e-4, 1e-6])
def test_a_slider_above_its_crank_is_singular_at_every_size(size):
    """Both bars upright: the second row depends on the first only there. The slider's column is 1, the others are as
    small as the bars, in m."""
    figures = f"mass: 1, com: [{size}, 0, 0], inertia: [{size**2}, {size**2}, {size**2}]"
    text = f"""\
mechanism:
  bodies:
    - {{name: A, {figures}}}
    - {{name: B, {figures}, origin: {{xyz: [{size}, 0, 0]}}}}
    - {{name: S, type: prismatic, parent: base, axis: [1, 0, 0], mass: 1}}
  loops: [{{name: pin, parent: S, child: B, child_origin: {{xyz: [{size}, 0, 0]}}}}]
joints: {{A: {{initial: {{position: 90 deg}}}}, B: {{initial: {{guess: GUESS}}}}}}
"""
    assert "singular for 'pin': the constraints have a condition number of inf" in mistake(
        text.replace("GUESS", "180 deg")
    )
    assert redundant(text.replace("90 deg", "60 deg").replace("GUESS", "-120 deg")) == OUT_OF_PLANE
