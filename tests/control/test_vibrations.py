"""Input shaping for the modes of elastic links."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from cosim import load_rig
from cosim.control.input_shaping import ShapedTrajectory
from cosim.control.retiming import SimulatedMotion
from cosim.control.vibrations import Vibration, vibrations
from cosim.core.errors import CosimError
from cosim.core.types import TrajectoryContext
from cosim.rig.rig import Rig
from cosim.rig.wiring.prescribed_motion import JointlyPrescribed, PrescribedPart
from tests.control.elastic_arms import two_link_arm
from tests.kit.rigs import rig_in

BEAM = """
mechanism:
  gravity: [0, 0, 0]
  bodies: [{{name: arm, joint: hub, axis: [0, 0, 1]}}]
  elastic:
    - link: arm
      beam:
        length: 0.8 m
        stiffness: {{mass: 0.2 kg/m, EI: [30, 30]}}
        modes: {{bend_y: 2, bend_z: 1}}
        damping_ratio: 0.02
joints: {{hub: {{{joint}}}}}
{controllers}
schedule: {{step: 0.1 ms, duration: 1 s}}
"""
IDEAL, AUTO = "actuator: {type: ideal}", "{type: zv, modes: [auto]}"


def trajectory(shaping: str, goal: float = 1, duration: float = 1) -> str:
    return f"{{type: quintic, goal: {goal}, duration: {duration} s, shaping: {shaping}}}"


def commanded(motion: str) -> str:
    return BEAM.format(
        joint=IDEAL, controllers=f"controllers: [{{type: feedforward_pd, kp: 1, kd: 1, trajectory: {motion}}}]"
    )


def prescribed(motion: str) -> str:
    return BEAM.format(joint=f"prescribed: {motion}", controllers="")


@pytest.fixture
def rig_of(tmp_path: Path):
    return partial(rig_in, tmp_path)


# --- two links --------------------------------------------------------------------------------------


def vibration(rig: Rig) -> float:
    """Of the tool after the motion, m."""
    run = rig.run()
    after = np.array([run[f"tool.{axis}/position"] for axis in "xy"])[:, run.t > 1.3]
    return float(np.linalg.norm(after - after.mean(axis=1, keepdims=True), axis=0).max())


@pytest.mark.parametrize(("goal", "type"), [("-30 deg", "zvd")])
def test_vibration_after_a_motion_falls(rig_of, goal: str, type: str) -> None:
    """The elbow of the arm starts at 60°."""
    text = two_link_arm().replace("[60 deg, -30 deg]", f"[60 deg, {goal}]")
    shaped = text.replace("delay: 0.1 s", f"delay: 0.1 s, shaping: {{type: {type}, modes: [auto]}}")
    assert 100.0 * vibration(rig_of(shaped)) < vibration(rig_of(text))


def prescribed_arm(shaping: str = "") -> str:
    """The arm whose joints are prescribed and turn by 60° and −90°."""
    text, *_ = two_link_arm().split("joints:\n")
    first, second = (
        f"{{type: quintic, goal: {goal} deg, duration: 0.6 s, delay: 0.1 s{shaping}}}" for goal in (60, -30)
    )
    return f"""{text}joints:
  shoulder: {{prescribed: {first}}}
  elbow: {{initial: {{position: 60 deg}}, prescribed: {second}}}
schedule: {{step: 0.2 ms, duration: 2 s}}
"""


SHAPER = f", shaping: {AUTO}"


def test_prescribed_joints_end_without_vibration(rig_of) -> None:
    assert 1000.0 * vibration(rig_of(prescribed_arm(SHAPER))) < vibration(rig_of(prescribed_arm()))


def test_prescribed_motion_is_the_derivative_of_itself_and_keeps_its_path(rig_of) -> None:
    rig = rig_of(prescribed_arm(SHAPER))
    motions, step = [rig.plant.prescribed[name] for name in ("shoulder", "elbow")], 1e-5
    for t in np.linspace(0.05, 1.0, 37):
        around = [[list(motion.sample(t + d).values()) for motion in motions] for d in (-step, 0.0, step)]
        before, now, after = np.array(around)[..., 0]
        np.testing.assert_allclose((after - before)[:, 0] / (2.0 * step), now[:, 1], atol=1e-6)
        np.testing.assert_allclose((after - before)[:, 1] / (2.0 * step), now[:, 2], atol=1e-4)
        assert 1.5 * now[0, 0] == pytest.approx(np.radians(60.0) - now[1, 0], abs=1e-12)
    assert motions[0].end == motions[1].end
    np.testing.assert_allclose(motions[1].sample(motions[1].end)["position"], np.radians(-30.0), atol=1e-15)


def test_the_simulated_end_is_that_of_a_run(rig_of) -> None:
    """The change of the speed is found on a motion that is simulated with longer steps than a run's."""
    rig = rig_of(prescribed_arm())
    model, motions = rig.plant.controller_model, rig.plant.prescribed
    together = JointlyPrescribed(list(motions.values()))
    context = context_of(rig, *motions)
    found = vibrations(["auto"], together, context)
    omegas = np.array([2.0 * np.pi * mode.frequency for mode in found.modes])
    (left,) = SimulatedMotion(together, found, context, omegas, 400)(np.zeros((1, 2 * len(omegas))))
    run = rig.run()
    tick = round(together.end / 0.2e-3)
    names = [model.dof_names[k] for k in found.dofs]
    off = np.array([run[f"{name}/position"][tick] for name in names]) - found.rest
    ends = np.concatenate([off, [run[f"{name}/velocity"][tick] for name in names]])
    np.testing.assert_allclose(left, found.deflection @ ends, atol=2e-3 * np.abs(left).max())


# --- modes of a beam --------------------------------------------------------------------------------


def context_of(rig: Rig, *joints: str, passive: str = "nothing") -> TrajectoryContext:
    """Of a trajectory of these joints; passive: begin of the names of degrees of freedom that nothing moves."""
    model = rig.plant.controller_model
    index = np.array([model.dof_index(name) for name in joints])
    free = np.array([k for k, name in enumerate(model.dof_names) if name.startswith(passive)], dtype=int)
    return TrajectoryContext(index, model, rig.plant.start.q, model.limits.at(index), passive=free)


def test_frequencies_are_those_of_the_beam_with_its_joint_held(rig_of) -> None:
    rig = rig_of(commanded("{type: quintic, goal: 1, duration: 1 s}"))
    (loop,), context = rig.tick_model.loops, context_of(rig, "hub")
    found = vibrations(["arm.bend_y_2", "arm.bend_y_1"], loop.trajectory, context).modes
    clamped = np.array([4.694091, 1.875104]) ** 2 / 0.8**2 * np.sqrt(30.0 / 0.2) / (2.0 * np.pi)
    np.testing.assert_allclose([mode.frequency for mode in found], clamped, rtol=1e-4)
    np.testing.assert_allclose([mode.damping for mode in found], 0.02, rtol=1e-3)
    # a hub turns the beam about z: bending along z is not excited, and the second one along y hardly
    (first,) = vibrations(["auto"], loop.trajectory, context).modes
    assert first == Vibration(*found[1])


def test_a_floating_base_moves_with_the_modes(rig_of) -> None:
    """A clamped-free beam on a free body of little mass: the frequencies are as with both ends free."""
    text = prescribed(trajectory("{type: zvd, modes: [arm.bend_y_1]}")).replace(
        "bodies: [{name", "bodies: [{name: craft, joint: base, type: free, mass: 1e-5, inertia: [1, 1, 1e-7]}, {name"
    )
    rig = rig_of(text.replace("bend_y: 2", "bend_y: 8").replace("step: 0.1 ms", "step: 5 us"))
    context = context_of(rig, "hub", passive="base.")
    (mode,) = vibrations(["arm.bend_y_1"], rig.plant.prescribed["hub"], context).modes
    free = 4.730041**2 / 0.8**2 * np.sqrt(30.0 / 0.2) / (2.0 * np.pi)
    assert mode.frequency == pytest.approx(free, rel=2e-3)


@pytest.mark.parametrize("names", ["[auto]", "[arm.bend_y_1]"])
def test_a_motion_that_bends_nothing_stays_as_it_is(rig_of, names: str) -> None:
    motion = rig_of(prescribed(trajectory(f"{{type: zv, modes: {names}}}", goal=0))).plant.prescribed["hub"]
    assert motion.sample(0.4)["position"] == motion.sample(1.2)["position"] == 0.0


@pytest.mark.parametrize("duration", [1, 100])
def test_long_motions_keep_their_speed(rig_of, duration: int) -> None:
    part = rig_of(prescribed(trajectory(AUTO, duration=duration))).plant.prescribed["hub"]
    assert isinstance(part, PrescribedPart)
    assert isinstance(part.trajectory, ShapedTrajectory) == (duration == 100)


# --- errors -----------------------------------------------------------------------------------------


def refused(text: str, tmp_path: Path) -> CosimError:
    with pytest.raises(CosimError) as error:
        rig_in(tmp_path, text).plant  # noqa: B018
    return error.value


WRONG = ["{type: zv}", "{type: zv, frequency: 3 Hz, modes: [auto]}", "{type: zv, damping: 0.1, modes: [auto]}"]
WRONG += [f"{{type: zv, modes: {modes}}}" for modes in ("[auto, arm.bend_y_1]", "[arm.bendy_1]", "[]", "auto")]
WRONG += ["{type: zv, modes: [arm.bend_y_1, arm.bend_y_1]}"]


@pytest.mark.parametrize("shaping", WRONG)
def test_what_is_wrong_is_named(tmp_path: Path, shaping: str, said) -> None:
    controller, joint = (str(refused(kind(trajectory(shaping)), tmp_path)) for kind in (commanded, prescribed))
    said(joint)
    assert controller == joint.replace(":12 joints.hub.prescribed", ":13 controllers[0].trajectory") != joint


PRESCRIBED_MODE = "joints: {arm.bend_y_1: {prescribed: {type: quintic, goal: 1 mm, duration: 1 s}}, hub:"
NO_MODES = {
    "a moving base": BEAM.format(joint=IDEAL, controllers="").replace(
        "mechanism:", f"mechanism:\n  moving_base: {{x: {trajectory(AUTO)}}}", 1
    ),
    "a rigid mechanism": "mechanism: {bodies: [{name: arm, joint: hub, mass: 1, com: [1, 0, 0], inertia: [1, 1, 1]}]}\n"
    + commanded(trajectory(AUTO)).partition("damping_ratio: 0.02\n")[2],
    "a trajectory without end": commanded(f"{{type: sine, amplitude: 1, frequency: 1 Hz, shaping: {AUTO}}}"),
    "a prescribed mode": prescribed(trajectory(AUTO)).replace("joints: {hub:", PRESCRIBED_MODE),
}


@pytest.mark.parametrize("what", NO_MODES)
def test_what_modes_need(tmp_path: Path, what: str, said) -> None:
    said(refused(NO_MODES[what], tmp_path))


def test_modes_of_closed_loops_are_refused() -> None:
    with pytest.raises(CosimError, match=": the modes are known only without closed loops; give 'frequency'"):
        load_rig("rigs/elastic/slider_crank.yaml", [f"joints.crank.prescribed={trajectory(AUTO)}"]).plant  # noqa: B018


# --- feedback of the tip ---

GOAL = np.deg2rad(60.0)


@pytest.fixture(scope="module")
def error():
    """(largest error [rad] of the angle of the tip from 1 s to 2 s, from 3 s on) for a part of the tip and a kp."""
    rig = load_rig("rigs/elastic/single_link_tip.yaml")

    def errors(tip: float, kp: float) -> tuple[float, float]:
        run = rig.run(parameters={"tip_feedback.tip": tip, "tip_feedback.kp": kp})
        angle = np.arctan2(run["tip.y/position"], run["tip.x/position"])
        wrong = np.abs(np.angle(np.exp(1j * (angle - GOAL))))
        return float(wrong[(run.t > 1.0) & (run.t < 2.0)].max()), float(wrong[run.t > 3.0].max())

    return errors


def test_feedback_of_the_tip_settles_sooner_at_the_gains_of_the_rig(error) -> None:
    (motor, _), (tip, rest) = error(0.0, 30.0), error(1.0, 30.0)
    assert tip < 0.7 * motor
    assert rest < 1e-4


@pytest.mark.parametrize("kp", [200.0, 400.0])
def test_the_loop_of_the_tip_has_a_limit_that_the_loop_of_the_motor_has_not(error, kp: float) -> None:
    (early, late), (_, unstable) = error(0.0, kp), error(1.0, kp)
    assert late < 0.5 * early
    assert unstable > 1.0


def test_a_stiff_loop_of_the_motor_leaves_the_link_swinging(error) -> None:
    assert error(0.0, 400.0)[1] > 50.0 * error(0.0, 100.0)[1]
