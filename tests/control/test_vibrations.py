"""Input shaping for the modes of elastic links."""

from pathlib import Path

import numpy as np
import pytest

from cosim import load_rig
from cosim.control.vibrations import Vibration, vibrations
from cosim.errors import CosimError
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


@pytest.mark.parametrize(("goal", "factor"), [("60 deg", 50.0), ("30 deg", 10.0)])
def test_vibration_after_a_motion_falls(tmp_path: Path, goal: str, factor: float) -> None:
    def vibration(shaping: str) -> float:
        run = planar(tmp_path, goal, shaping).run()
        after = np.array([run[f"tool.{axis}/position"] for axis in "xy"])[:, run.t > 1.3]
        return float(np.hypot(*(after - after.mean(axis=1, keepdims=True))).max())

    assert factor * vibration(", shaping: {type: zvd, modes: [auto]}") < vibration("")


def context_of(rig: Rig) -> TrajectoryContext:
    model, index = rig.plant.model, np.zeros(1, dtype=int)
    return TrajectoryContext(index, model, rig.plant.start.q, model.limits.at(index))


def test_frequencies_are_those_of_the_beam_with_its_joint_held(tmp_path: Path) -> None:
    ideal = "controllers: [{type: feedforward_pd, kp: 1, kd: 1, trajectory: {type: quintic, goal: 1, duration: 1 s}}]"
    (tmp_path / "arm.yaml").write_text(BEAM.format(joint="actuator: {type: ideal}", controllers=ideal))
    rig = load_rig(tmp_path / "arm.yaml")
    (loop,) = rig.tick_model.loops
    found = vibrations(["arm.bend_y_2", "arm.bend_y_1"], loop.trajectory, context_of(rig))
    clamped = np.array([4.694091, 1.875104]) ** 2 / 0.8**2 * np.sqrt(30.0 / 0.2) / (2.0 * np.pi)
    np.testing.assert_allclose([mode.frequency for mode in found], clamped, rtol=1e-4)
    np.testing.assert_allclose([mode.damping for mode in found], 0.02, rtol=1e-3)
    # a hub turns the beam about z: bending along z is not excited, and the second one along y hardly
    (first,) = vibrations(["auto"], loop.trajectory, context_of(rig))
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
        ("{type: zv, modes: []}", "shaping: 'modes' is empty; name modes of elastic links, or auto"),
        (
            "{type: zv, modes: [arm.bend_y_1, arm.bend_y_1]}",
            "shaping: mode 'arm.bend_y_1' is given twice; take one out",
        ),
        ("{type: zv, modes: auto}", "shaping.modes: expected a list of names, got 'auto'"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, shaping: str, message: str) -> None:
    text = BEAM.format(joint="actuator: {type: ideal}", controllers=SHAPED.replace("SHAPING", shaping))
    (tmp_path / "arm.yaml").write_text(text)
    with pytest.raises(CosimError) as error:
        load_rig(tmp_path / "arm.yaml").plant  # noqa: B018
    assert str(error.value).endswith(message)


def test_modes_of_prescribed_joints_are_refused(tmp_path: Path) -> None:
    joint = "prescribed: " + TRAJECTORY.replace("SHAPING", "{type: zv, modes: [auto]}")
    (tmp_path / "arm.yaml").write_text(BEAM.format(joint=joint, controllers=""))
    with pytest.raises(CosimError) as error:
        load_rig(tmp_path / "arm.yaml").plant  # noqa: B018
    assert str(error.value).endswith(
        "shaping.modes: the modes are computed with the model of the mechanism; use them in the trajectory of a"
        " controller, or give 'frequency'"
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
