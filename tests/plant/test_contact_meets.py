"""Contacts beside everything else that acts in a mechanism, each against a value known otherwise."""

import math

import numpy as np
import pytest

from cosim.simulation.plant.integration import Integration
from tests.kit.rigs import controller, rig_in
from tests.plant.test_moreau import imbalance

G = 9.81
LAWS = {"rigid": "stiffness: rigid", "elastic": "stiffness: 1e5"}
MOTION = """
import numpy as np
from cosim.plugin import param, params

@params
class Params:
    start: float = param(default=0.0)
    velocity: float = param(default=0.0)
    acceleration: float = param(default=0.0)

class Ramp:
    end = np.inf

    def __init__(self, params):
        self.p = params

    def sample(self, t):
        p, one = self.p, np.ones(1)
        x = p.start + p.velocity * t + 0.5 * p.acceleration * t * t
        v = p.velocity + p.acceleration * t
        return {"position": x * one, "velocity": v * one, "acceleration": p.acceleration * one, "effort": 0.0 * one}

def load(params, joints, folder, start):
    return Ramp(params)
"""
both_laws = pytest.mark.parametrize("law", LAWS)

CONVEYOR = """
name: conveyor
mechanism:
  bodies:
    - {{name: belt, joint: drive, type: prismatic, axis: [1, 0, 0], mass: 10 kg, inertia: [1, 1, 1]}}
    - {{name: box, parent: base, type: free, mass: 2 kg, inertia: [0.01, 0.01, 0.01]}}
  contacts:
    - {{name: lies, link: box, box: [20 cm, 20 cm, 10 cm], with: {{link: belt, plane: {{}}}}, friction: 0.3, {law}}}
joints:
  drive: {{prescribed: {motion}}}
  box: {{initial: {{position: [0, 0, 0.05, 0, 0, 0, 1]}}}}
schedule: {{step: 1 ms, duration: 1 s}}
"""
RAMP = "{type: ramp.py, velocity: 0, acceleration: 1}"  # m/s, m/s²


@both_laws
def test_a_box_is_taken_along_by_a_belt(tmp_path, law):
    run = rig_in(tmp_path, CONVEYOR.format(law=LAWS[law], motion=RAMP), ramp=MOTION).run()
    assert run["box.x/position"][-1] == pytest.approx(run["drive/position"][-1], abs=1e-3)
    assert run["lies/normal_force"][-1] == pytest.approx(2 * G, rel=1e-6)
    assert run["lies/friction_force"][-1] == pytest.approx(2 * 1.0, rel=1e-5)
    # the belt is pushed with what moves it and the box
    assert run["drive/effort"][-1] == pytest.approx(12 * 1.0, rel=1e-5)
    assert imbalance(run) < (1e-12 if law == "rigid" else 1e-3)


@both_laws
def test_a_box_slips_on_a_belt_that_starts_at_once(tmp_path, law):
    run = rig_in(
        tmp_path, CONVEYOR.format(law=LAWS[law], motion="{type: ramp.py, velocity: 1, acceleration: 0}"), ramp=MOTION
    ).run()
    slipping = 1.0 / (0.3 * G)
    assert run["box.x/velocity"][-1] == pytest.approx(1.0, rel=1e-6)
    assert run["box.x/position"][-1] == pytest.approx(1.0 - 0.5 * slipping, abs=3e-3)
    # of the work of the belt one half is the box's kinetic energy, the other one is lost
    assert run["energy/work"][-1] == pytest.approx(2.0, rel=1e-2)
    assert run["energy/contacts"][-1] == pytest.approx(1.0, rel=2e-2)


def test_a_press_needs_the_force_of_what_it_presses(tmp_path):
    text = """
    name: press
    mechanism:
      gravity: [0, 0, 0]
      bodies:
        - {name: ram, joint: down, type: prismatic, axis: [0, 0, -1], origin: {xyz: [0, 0, 0.3]}, mass: 5 kg}
        - {name: part, joint: table, parent: base, type: prismatic, axis: [0, 0, 1], mass: 1 kg, stiffness: 2e4}
      contacts:
        - {name: c, link: ram, sphere: 5 cm, with: {link: part, sphere: 5 cm}, friction: 0.5, stiffness: 1e5}
    joints:
      down: {prescribed: {type: ramp.py, start: 0.18, velocity: 0.04, acceleration: 0}}
    schedule: {step: 1 ms, duration: 1 s}
    """
    run = rig_in(tmp_path, text, ramp=MOTION).run()
    squeeze = run["down/position"][-1] - 0.2  # of contact and table in series
    force = squeeze / (1 / 1e5 + 1 / 2e4)
    assert run["c/normal_force"][-1] == pytest.approx(force, rel=1e-2)
    assert run["down/effort"][-1] == pytest.approx(force, rel=1e-2)


@both_laws
def test_fingers_hold_a_box_by_friction(tmp_path, law):
    """Two fingers, one following the other, hold a box of 0.2 kg with 2 μ F, and with less it falls."""
    text = """
    name: gripper
    mechanism:
      bodies:
        - {{name: left, joint: close, type: prismatic, axis: [1, 0, 0], origin: {{xyz: [-0.1, 0, 0.5]}}, mass: 0.1 kg,
           inertia: [1e-4, 1e-4, 1e-4]}}
        - {{name: right, joint: follow, parent: base, type: prismatic, axis: [-1, 0, 0], origin: {{xyz: [0.1, 0, 0.5]}},
           mass: 0.1 kg, inertia: [1e-4, 1e-4, 1e-4], mimic: {{joint: close}}}}
        - {{name: box, parent: base, type: free, mass: 0.2 kg, inertia: [1e-4, 1e-4, 1e-4]}}
      contacts:
        - &pad {{name: l, link: left, box: [2 cm, 4 cm, 4 cm], friction: 0.5, {law},
           with: {{link: box, box: [10 cm, 10 cm, 10 cm]}}}}
        - {{<<: *pad, name: r, link: right}}
    joints:
      close: {{actuator: {{type: ideal}}, initial: {{position: 0.04}}}}
      box: {{initial: {{position: [0, 0, 0.5, 0, 0, 0, 1]}}}}
    controllers:
      - {{name: squeeze, type: push.py, joints: [close]}}
    schedule: {{step: 1 ms, duration: 0.2 s}}
    """
    for force, holds in ((5.0, True), (3.0, False)):
        # a following finger takes half of the effort
        rig = rig_in(tmp_path, text.format(law=LAWS[law]), push=controller(f"effort = ops.array([{force}])"))
        run = rig.run()
        fell = 0.5 - run["box.z/position"][-1]
        assert (fell < 2e-3) == holds, (force, fell)
    assert fell == pytest.approx(0.5 * (G - 2 * 0.5 * 1.5 / 0.2) * 0.04, rel=2e-2)


@both_laws
def test_a_bouncing_ball_on_a_shaking_table_leaves_no_energy_behind(tmp_path, law):
    text = """
    name: table
    mechanism:
      moving_base: {{z: {{type: sine, amplitude: 2 mm, frequency: 3 Hz}}}}
      bodies:
        - {{name: ball, joint: fly, type: prismatic, axis: [0, 0, 1], mass: 1 kg}}
      contacts:
        - {{name: c, link: ball, sphere: 5 cm, with: {{link: base, plane: {{}}}}, friction: 0.5, {law}}}
    joints:
      fly: {{initial: {{position: 0.1}}}}
    schedule: {{step: 1 ms, duration: 2 s}}
    """
    run = rig_in(tmp_path, text.format(law=LAWS[law])).run()
    assert run["c/state"][-1] > 0
    assert imbalance(run) < 2e-3


def test_a_beam_that_touches_carries_the_force_of_a_propped_beam(tmp_path):
    """The prop under the tip of a cantilever under its own weight carries 3/8 of it."""
    text = """
    name: beam
    mechanism:
      bodies:
        - {name: beam, type: fixed}
      elastic:
        - link: beam
          beam: {length: 1 m, density: 7850 kg/m^3, youngs_modulus: 210 GPa, modes: {bend_z: 4}, damping_ratio: 0.1,
                 section: {shape: rectangle, width: 2 cm, height: 1 cm}}
      contacts:
        - {name: prop, link: beam, sphere: 1 mm, at: [1, 0, 0], with: ground, friction: 0, stiffness: 1e7}
      ground: {xyz: [0, 0, -0.001]}
    schedule: {step: 0.2 ms, duration: 3 s}
    """
    run = rig_in(tmp_path, text).run()
    weight = 7850 * 0.02 * 0.01 * G
    assert run["prop/normal_force"][-1] == pytest.approx(3 / 8 * weight, rel=2e-2)


@both_laws
def test_a_leg_with_a_geared_motor_pushes_as_its_torque_says(tmp_path, law):
    text = """
    name: leg
    mechanism:
      gravity: [0, 0, 0]
      bodies:
        - {{name: lever, joint: hip, type: revolute, axis: [0, 1, 0], origin: {{xyz: [0, 0, 0.2]}}, mass: 1 kg,
           com: [0.15, 0, 0], inertia: [1e-3, 1e-2, 1e-2]}}
      contacts:
        - {{name: foot, link: lever, sphere: 2 cm, at: [0.3, 0, 0], with: ground, friction: 0, {law}}}
    joints:
      hip:
        initial: {{position: 0.5}}
        actuator: {{type: dc_motor, torque_constant: 0.05, resistance: 0.5, inductance: 0.1 mH, rotor_inertia: 1e-5,
                   ratio: 20}}
    controllers:
      - {{name: push, type: push.py, joints: [hip]}}
    schedule: {{step: 1 ms, duration: 1 s}}
    """
    rig = rig_in(tmp_path, text.format(law=LAWS[law]), push=controller("effort = ops.array([3.0])"))
    run = rig.run()
    reach = 0.3 * math.cos(run["hip/position"][-1])
    assert run["foot/normal_force"][-1] == pytest.approx(run["hip/effort"][-1] / reach, rel=1e-4)
    assert imbalance(run) < 2e-2


def test_interpreted_and_compiled_runs_are_the_same(tmp_path):
    text = CONVEYOR.format(law=LAWS["elastic"], motion=RAMP)
    compiled, interpreted = (
        rig_in(tmp_path, text, interpret=each, ramp=MOTION).run(duration=0.02) for each in (False, True)
    )
    for name in compiled.signals:
        assert np.allclose(compiled[name], interpreted[name], rtol=1e-9, atol=1e-9), name


def test_lanes_are_equal_to_single_runs_to_the_bit(tmp_path):
    rig = rig_in(tmp_path, CONVEYOR.format(law=LAWS["elastic"], motion=RAMP), ramp=MOTION)
    friction = np.linspace(0.05, 0.5, 6)
    batch = rig.rollouts(parameters={"mechanism.lies.friction": friction}, duration=0.3, keep="all")
    for k, value in enumerate(friction):
        override = f"mechanism.contacts.lies.friction={float(value)!r}"
        text = CONVEYOR.format(law=LAWS["elastic"], motion=RAMP)
        alone = rig_in(tmp_path, text, override, ramp=MOTION).run(duration=0.3)
        assert np.array_equal(batch["box.x/position"][k], alone["box.x/position"])


@both_laws
def test_a_step_without_length_changes_nothing(tmp_path, law):
    """As where an event at the very end of a step triggers another one."""
    text = CONVEYOR.format(law=LAWS[law], motion=RAMP) + "events:\n  - {do: latch, of: box, at: 0.5}\n"
    rig = rig_in(tmp_path, text, ramp=MOTION)
    layout, integration = rig.plant.layout, rig.tick_model.integration
    x = layout.pack(rig.plant.initial())
    request = np.zeros(rig.plant.model.nv)
    after = np.asarray(Integration(rig.plant, "moreau", False).advance(0.0, x, request, 1e-3), dtype=float)
    assert np.isfinite(after).all() and integration.integrator == "moreau"
    same = Integration(rig.plant, "moreau", False).advance(1e-3, after, request, 0.0)
    np.testing.assert_allclose(np.asarray(same, dtype=float), after, rtol=1e-14)


# --- forces between bodies, which are explicit --------------------------------------------------------------

EXPLICIT = """
name: explicit
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {{name: mass, parent: base, type: prismatic, axis: [0, 0, 1], origin: {{xyz: [0, 0, 1]}}, mass: 1 kg}}
    - {{name: wheel, parent: base, type: revolute, axis: [0, 0, 1], mass: 1 kg, inertia: [0.01, 0.01, 0.01]}}
  contacts: [{{name: floor, link: mass, point: [0, 0, -50 cm], with: ground, friction: 0}}]
{law}
joints:
  mass: {{initial: {{position: 1 mm, velocity: 0.01}}}}
  wheel: {{initial: {{position: 1e-3, velocity: 0.01}}}}
schedule: {{step: 1 ms, duration: 0.6 s}}
"""
LINEAR_LAW = """
from cosim.plugin import ForceLaw, ops, param, params

@params
class Params:
    stiffness: float = param(unit="N/m", above=0, doc="along z")

def load(params):
    return ForceLaw(lambda frames, q, v, t: [ops.array([0.0, 0.0, params.stiffness * (1.0 - frames[0].position[2])])])
"""
SPRING = "  springs: [{{name: s, between: [base, mass], points: [[0, 0, 2], [0, 0, 0]], unloaded_length: 1, {}: {}}}]"
TORSION = "  torsion_springs: [{{name: s, between: [base, wheel], {}: {}}}]"
LAW = "  forces: [{{name: s, type: linear.py, between: [mass], params: {{{}: {}}}}}]"
# where the step becomes unstable: springs at ω h = 2, dampers, which look ahead by half a step, at d h / m = 1
LIMITS_OF_LAWS = {
    "spring": (SPRING, "stiffness", 4e6),
    "damper": (SPRING, "damping", 1e3),
    "torsion spring": (TORSION, "stiffness", 4e4),
    "torsion damper": (TORSION, "damping", 10.0),
    "law": (LAW, "stiffness", 4e6),
}


@pytest.mark.parametrize("kind", LIMITS_OF_LAWS)
def test_a_law_between_bodies_is_warned_of_where_its_steps_grow(tmp_path, kind):
    form, key, limit = LIMITS_OF_LAWS[kind]
    for factor, grows in ((0.9, False), (1.1, True)):
        found = rig_in(tmp_path, EXPLICIT.format(law=form.format(key, factor * limit)), linear=LINEAR_LAW)
        said = [line for lines in found.warnings for line in lines if "too short for a step" in line]
        assert len(said) == grows, said
        run = found.run()
        largest = max(np.abs(run[f"{name}/position"]).max() for name in ("mass", "wheel"))
        assert run.unstable == tuple(said)
        if grows:
            assert "too short for a step of 1 ms with moreau; use schedule.substeps: 2 or softer springs" in said[0]
            assert largest > 1.0
        else:
            assert largest < 1e-2
