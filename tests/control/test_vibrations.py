"""Input shaping for the modes of elastic links."""

from pathlib import Path

import numpy as np
import pytest

from cosim import load_rig
from cosim.control.input_shaping import ShapedTrajectory
from cosim.control.retiming import SimulatedMotion
from cosim.control.vibrations import Vibration, vibrations
from cosim.errors import CosimError
from cosim.rig.build.prescribed_motion import JointlyPrescribed, PrescribedPart
from cosim.rig.rig import Rig
from cosim.types import TrajectoryContext

ARM = Path("rigs/elastic/two_link_arm.yaml")
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


def planar(tmp_path: Path, goal: str, shaping: str) -> Rig:
    """The arm without gravity; its elbow starts at 60°."""
    text = ARM.read_text().replace("mechanism:\n", "mechanism:\n  gravity: [0, 0, 0]\n", 1)
    text = text.replace("[60 deg, -30 deg]", f"[60 deg, {goal}]").replace("delay: 0.1 s", f"delay: 0.1 s{shaping}")
    (tmp_path / "arm.yaml").write_text(text.replace("duration: 2 s", "duration: 2.5 s"))
    return load_rig(tmp_path / "arm.yaml")


def vibration(rig: Rig) -> float:
    """Of the tool after the motion, m."""
    run = rig.run()
    after = np.array([run[f"tool.{axis}/position"] for axis in "xy"])[:, run.t > 1.3]
    return float(np.linalg.norm(after - after.mean(axis=1, keepdims=True), axis=0).max())


@pytest.mark.parametrize(("goal", "type"), [("60 deg", "zvd"), ("-30 deg", "zv"), ("-30 deg", "ei")])
def test_vibration_after_a_motion_falls(tmp_path: Path, goal: str, type: str) -> None:
    shaped = planar(tmp_path, goal, f", shaping: {{type: {type}, modes: [auto]}}")
    assert 100.0 * vibration(shaped) < vibration(planar(tmp_path, goal, ""))


PRESCRIBED = "{type: quintic, goal: GOAL, duration: 0.6 s, delay: 0.1 sSHAPING}"


def prescribed(tmp_path: Path, shoulder: str, elbow: str) -> Rig:
    """The arm without gravity whose joints are prescribed and turn by 60° and −90°."""
    text, *_ = ARM.read_text().replace("mechanism:\n", "mechanism:\n  gravity: [0, 0, 0]\n", 1).split("joints:\n")
    motions = zip((60, -30), (shoulder, elbow), strict=True)
    first, second = (PRESCRIBED.replace("GOAL", f"{goal} deg").replace("SHAPING", s) for goal, s in motions)
    text += f"""joints:
  shoulder: {{prescribed: {first}}}
  elbow: {{initial: {{position: 60 deg}}, prescribed: {second}}}
schedule: {{step: 0.2 ms, duration: 2 s}}
"""
    (tmp_path / "arm.yaml").write_text(text)
    return load_rig(tmp_path / "arm.yaml")


SHAPER = ", shaping: {type: zv, modes: [auto]}"


def test_prescribed_joints_end_without_vibration(tmp_path: Path) -> None:
    plain, shaped = prescribed(tmp_path, "", ""), prescribed(tmp_path, SHAPER, SHAPER)
    assert 1000.0 * vibration(shaped) < vibration(plain)


def test_prescribed_motion_is_the_derivative_of_itself_and_keeps_its_path(tmp_path: Path) -> None:
    rig = prescribed(tmp_path, SHAPER, SHAPER)
    motions, step = [rig.plant.prescribed[name] for name in ("shoulder", "elbow")], 1e-5
    for t in np.linspace(0.05, 1.0, 37):
        around = [[list(motion.sample(t + d).values()) for motion in motions] for d in (-step, 0.0, step)]
        before, now, after = np.array(around)[..., 0]
        np.testing.assert_allclose((after - before)[:, 0] / (2.0 * step), now[:, 1], atol=1e-6)
        np.testing.assert_allclose((after - before)[:, 1] / (2.0 * step), now[:, 2], atol=1e-4)
        assert 1.5 * now[0, 0] == pytest.approx(np.radians(60.0) - now[1, 0], abs=1e-12)
    assert motions[0].end == motions[1].end
    np.testing.assert_allclose(motions[1].sample(motions[1].end)["position"], np.radians(-30.0), atol=1e-15)


def test_the_simulated_end_is_that_of_a_run(tmp_path: Path) -> None:
    """The change of the speed is found on a motion that is simulated with longer steps than those of a run."""
    rig = prescribed(tmp_path, "", "")
    model, motions = rig.plant.controller_model, rig.plant.prescribed
    index = np.array([model.dof_index(name) for name in motions])
    together = JointlyPrescribed(list(motions.values()))
    context = TrajectoryContext(index, model, rig.plant.start.q, model.limits.at(index))
    found = vibrations(["auto"], together, context)
    omegas = np.array([2.0 * np.pi * mode.frequency for mode in found.modes])
    (left,) = SimulatedMotion(together, found, context, omegas, 400)(np.zeros((1, 2 * len(omegas))))
    run = rig.run()
    tick = round(together.end / 0.2e-3)
    names = [model.dof_names[k] for k in found.dofs]
    off = np.array([run[f"{name}/position"][tick] for name in names]) - found.rest
    ends = np.concatenate([off, [run[f"{name}/velocity"][tick] for name in names]])
    np.testing.assert_allclose(left, found.deflection @ ends, atol=2e-3 * np.abs(left).max())


def context_of(rig: Rig) -> TrajectoryContext:
    model, index = rig.plant.model, np.zeros(1, dtype=int)
    return TrajectoryContext(index, model, rig.plant.start.q, model.limits.at(index))


def test_frequencies_are_those_of_the_beam_with_its_joint_held(tmp_path: Path) -> None:
    ideal = "controllers: [{type: feedforward_pd, kp: 1, kd: 1, trajectory: {type: quintic, goal: 1, duration: 1 s}}]"
    (tmp_path / "arm.yaml").write_text(BEAM.format(joint="actuator: {type: ideal}", controllers=ideal))
    rig = load_rig(tmp_path / "arm.yaml")
    (loop,) = rig.tick_model.loops
    found = vibrations(["arm.bend_y_2", "arm.bend_y_1"], loop.trajectory, context_of(rig)).modes
    clamped = np.array([4.694091, 1.875104]) ** 2 / 0.8**2 * np.sqrt(30.0 / 0.2) / (2.0 * np.pi)
    np.testing.assert_allclose([mode.frequency for mode in found], clamped, rtol=1e-4)
    np.testing.assert_allclose([mode.damping for mode in found], 0.02, rtol=1e-3)
    # a hub turns the beam about z: bending along z is not excited, and the second one along y hardly
    (first,) = vibrations(["auto"], loop.trajectory, context_of(rig)).modes
    assert first == Vibration(*found[1])


TRAJECTORY = "{type: quintic, goal: 1, duration: 1 s, shaping: SHAPING}"
SHAPED = "controllers: [{type: feedforward_pd, kp: 1, kd: 1, trajectory: " + TRAJECTORY + "}]"


@pytest.mark.parametrize(
    ("shaping", "message"),
    [
        ("{type: zv}", "shaping: 'frequency' is missing; give it, or 'modes' of elastic links"),
        ("{type: zv, frequency: 3 Hz, modes: [auto]}", "shaping: 'frequency' and 'modes' are given; keep one of both"),
        ("{type: zv, damping: 0.1, modes: [auto]}", "shaping: the damping of 'modes' is known; take 'damping' out"),
        ("{type: zv, modes: [auto, arm.bend_y_1]}", "shaping.modes: 'auto' stands alone; take the other names out"),
        (
            "{type: zv, modes: [arm.bendy_1]}",
            "shaping.modes: there is no mode 'arm.bendy_1'; did you mean 'arm.bend_y_1'?",
        ),
        ("{type: zv, modes: []}", "shaping: 'modes' is empty; name modes of elastic links, or take [auto]"),
        (
            "{type: zv, modes: [arm.bend_y_1, arm.bend_y_1]}",
            "shaping: mode 'arm.bend_y_1' is given twice; take one out",
        ),
        ("{type: zv, modes: auto}", "shaping.modes: expected a list of names, got 'auto'"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, shaping: str, message: str) -> None:
    of_controller = (
        "actuator: {type: ideal}",
        SHAPED.replace("SHAPING", shaping),
        "arm.yaml:13 controllers[0].trajectory",
    )
    of_joint = "prescribed: " + TRAJECTORY.replace("SHAPING", shaping), "", "arm.yaml:12 joints.hub.prescribed"
    for joint, controllers, place in (of_controller, of_joint):
        (tmp_path / "arm.yaml").write_text(BEAM.format(joint=joint, controllers=controllers))
        with pytest.raises(CosimError) as error:
            load_rig(tmp_path / "arm.yaml").plant  # noqa: B018
        assert str(error.value).endswith(f"{place}.{message}")


@pytest.mark.parametrize("names", ["[auto]", "[arm.bend_y_1]"])
def test_a_motion_that_bends_nothing_stays_as_it_is(tmp_path: Path, names: str) -> None:
    still = TRAJECTORY.replace("goal: 1", "goal: 0").replace("SHAPING", f"{{type: zv, modes: {names}}}")
    (tmp_path / "arm.yaml").write_text(BEAM.format(joint="prescribed: " + still, controllers=""))
    motion = load_rig(tmp_path / "arm.yaml").plant.prescribed["hub"]
    assert motion.sample(0.4)["position"] == motion.sample(1.2)["position"] == 0.0


def test_a_floating_base_moves_with_the_modes(tmp_path: Path) -> None:
    """A clamped-free beam on a free body of little mass: the frequencies are those of a beam with both ends free."""
    text = BEAM.format(
        joint="prescribed: " + TRAJECTORY.replace("SHAPING", "{type: zvd, modes: [arm.bend_y_1]}"), controllers=""
    )
    text = text.replace(
        "bodies: [{name", "bodies: [{name: craft, joint: base, type: free, mass: 1e-5, inertia: [1, 1, 1e-7]}, {name"
    )
    text = text.replace("bend_y: 2", "bend_y: 8").replace("step: 0.1 ms", "step: 5 us")
    (tmp_path / "arm.yaml").write_text(text)
    rig = load_rig(tmp_path / "arm.yaml")
    model = rig.plant.controller_model
    index = np.array([model.dof_index("hub")])
    base = np.array([k for k, name in enumerate(model.dof_names) if name.startswith("base.")])
    context = TrajectoryContext(index, model, rig.plant.start.q, model.limits.at(index), passive=base)
    (mode,) = vibrations(["arm.bend_y_1"], rig.plant.prescribed["hub"], context).modes
    free = 4.730041**2 / 0.8**2 * np.sqrt(30.0 / 0.2) / (2.0 * np.pi)
    assert mode.frequency == pytest.approx(free, rel=2e-3)


def test_modes_of_a_moving_base_are_refused(tmp_path: Path) -> None:
    base = "mechanism:\n  moving_base: {x: " + TRAJECTORY.replace("SHAPING", "{type: zv, modes: [auto]}") + "}"
    text = BEAM.format(joint="actuator: {type: ideal}", controllers="").replace("mechanism:", base, 1)
    (tmp_path / "arm.yaml").write_text(text)
    with pytest.raises(CosimError) as error:
        load_rig(tmp_path / "arm.yaml").plant  # noqa: B018
    assert str(error.value).endswith(
        "arm.yaml:3 mechanism.moving_base.x.shaping.modes: the modes are computed with the model of the mechanism; use"
        " them for a controller or a prescribed joint, or give 'frequency'"
    )


@pytest.mark.parametrize(
    ("mechanism", "trajectory", "message"),
    [
        ("rigs/two_link.yaml", "quintic", "the mechanism has no elastic links; give 'frequency'"),
        (None, "sine", "the trajectory has no end at which its modes are known; give 'frequency'"),
    ],
)
def test_what_modes_need(tmp_path: Path, mechanism: str | None, trajectory: str, message: str) -> None:
    if mechanism is None:
        endless = "{type: sine, amplitude: 1, frequency: 1 Hz, shaping: {type: zv, modes: [auto]}}"
        controllers = SHAPED.replace(TRAJECTORY, endless)
        text = BEAM.format(joint="actuator: {type: ideal}", controllers=controllers)
    else:
        text = (
            "mechanism: {bodies: [{name: arm, joint: hub, mass: 1, com: [1, 0, 0], inertia: [1, 1, 1]}]}\n"
            "joints: {hub: {actuator: {type: ideal}}}\n"
            + SHAPED.replace("SHAPING", "{type: zv, modes: [auto]}")
            + "\nschedule: {step: 1 ms, duration: 1 s}\n"
        )
    (tmp_path / "arm.yaml").write_text(text)
    with pytest.raises(CosimError) as error:
        load_rig(tmp_path / "arm.yaml").plant  # noqa: B018
    assert str(error.value).endswith(f"shaping.modes: {message}")


def test_modes_of_closed_loops_are_refused() -> None:
    motion = TRAJECTORY.replace("SHAPING", "{type: zv, modes: [auto]}")
    with pytest.raises(CosimError) as error:
        load_rig("rigs/elastic/slider_crank.yaml", [f"joints.crank.prescribed={motion}"]).plant  # noqa: B018
    assert str(error.value).endswith(": the modes are those of mechanisms without closed loops; give 'frequency'")


def test_a_prescribed_mode_is_no_vibration(tmp_path: Path) -> None:
    joint = "prescribed: " + TRAJECTORY.replace("SHAPING", "{type: zv, modes: [auto]}")
    text = BEAM.format(joint=joint, controllers="")
    mode = "joints:\n  arm.bend_y_1: {prescribed: {type: quintic, goal: 1 mm, duration: 1 s}}\n  hub: {" + joint + "}"
    (tmp_path / "arm.yaml").write_text(text.replace("joints: {hub: {" + joint + "}}", mode))
    with pytest.raises(CosimError) as error:
        load_rig(tmp_path / "arm.yaml").plant  # noqa: B018
    assert str(error.value).endswith(
        "shaping.modes: the mode 'arm.bend_y_1' is itself prescribed or commanded; give 'frequency'"
    )


def test_long_motions_keep_their_speed(tmp_path: Path) -> None:
    joint = "prescribed: " + TRAJECTORY.replace("SHAPING", "{type: zv, modes: [auto]}")
    texts = [BEAM.format(joint=joint.replace("duration: 1 s", f"duration: {s} s"), controllers="") for s in (1, 100)]
    kept = []
    for text in texts:
        (tmp_path / "arm.yaml").write_text(text)
        part = load_rig(tmp_path / "arm.yaml").plant.prescribed["hub"]
        assert isinstance(part, PrescribedPart)
        kept.append(isinstance(part.trajectory, ShapedTrajectory))
    assert kept == [False, True]
