"""Virtual contacts of real joints: what drives exert, how stiff they may be, and what is refused."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.linalg import expm

from cosim.apps.scenario.armed_rig import ArmedRig
from cosim.apps.scenario.command import ScenarioFiles, run_scenarios
from cosim.control.load_emulation import load_efforts
from cosim.control.virtual_walls import largest_stiffness, work_of_held
from cosim.core.errors import RunError
from cosim.rig.inspection import limits_of_walls
from cosim.rig.rig import Rig
from cosim.rig.sections.rig_spec import read_rig
from cosim.rig.wiring.emulated_plant import emulated_plant
from tests.kit.refusals import refusal
from tests.kit.rigs import controller, rig_in

RIG = Path(__file__).parents[2] / "rigs" / "haptic_wall.yaml"
T, MASS, B = 1e-3, 1.0, 2.0


def sampled_loop(k: float, delay: int, b: float = B) -> np.ndarray:
    """From sample to sample: position and velocity of a mass with friction b, which meets a wall of stiffness k whose
    force is held and comes `delay` samples late, then the forces on their way."""
    continuous = np.array([[0.0, 1.0, 0.0], [0.0, -b / MASS, 1.0 / MASS], [0.0, 0.0, 0.0]])
    held = expm(continuous * T)
    F, force = np.zeros((2 + delay, 2 + delay)), np.zeros(2 + delay)
    if delay:
        force[-1] = 1.0
        F[2, 0] = -k
        F[3:, 2:-1] = np.eye(delay - 1)
    else:
        force[0] = -k
    F[:2, :2] = held[:2, :2]
    F[:2] += np.outer(held[:2, 2], force)
    return F


def bounces_grow(k: float, delay: int) -> bool:
    x = np.zeros(2 + delay)
    x[0], F = 1.0, sampled_loop(k, delay)
    early = late = 0.0
    for n in range(200_000):
        x = F @ x
        early, late = (
            (max(early, abs(x[0])), late) if n < 50_000 else (early, max(late, abs(x[0])) if n > 150_000 else late)
        )
    return late > early


@pytest.mark.parametrize("delay", [0, 1, 2])
def test_the_limit_is_where_the_sampled_loop_becomes_unstable(delay):
    most = largest_stiffness(np.array([B]), np.array([[1.0]]), T, delay)
    assert most == pytest.approx(2 * B / (T * (1 + 2 * delay)))
    low, high = 0.1 * most, 10 * most
    while high / low > 1.001:
        k = math.sqrt(low * high)
        stable = np.abs(np.linalg.eigvals(sampled_loop(k, delay))).max() < 1.0
        low, high = (k, high) if stable else (low, k)
    assert most == pytest.approx(low, rel=0.05)
    assert not bounces_grow(0.9 * most, delay)
    assert bounces_grow(1.1 * most, delay)


def test_the_damping_of_several_joints_meets_a_wall_along_its_normal():
    rng = np.random.default_rng(1)
    b, J = rng.uniform(0.1, 2.0, 4), rng.normal(size=(1, 4))
    along = 1.0 / float((J @ np.diag(1.0 / b) @ J.T)[0, 0])
    assert largest_stiffness(b, J, T, 1.5) == pytest.approx(2 * along / (T * 4.0))
    # of several springs what they generate together is just covered by the damping
    J = rng.normal(size=(3, 4))
    k = largest_stiffness(b, J, T, 1.5)
    left = np.linalg.eigvalsh(np.diag(b) - 0.5 * k * T * 4.0 * J.T @ J)
    assert left[0] == pytest.approx(0.0, abs=1e-9)
    assert (left[1:] > 0.0).all()


def test_joints_without_damping_are_stable_with_no_wall_and_those_that_do_not_feel_it_do_not_count():
    J = np.array([[1.0, 0.0]])
    assert largest_stiffness(np.array([0.0, 1.0]), J, T, 0.0) == 0.0
    assert largest_stiffness(np.array([1.0, 0.0]), J, T, 0.0) == pytest.approx(2.0 / T)
    assert largest_stiffness(np.array([1.0, 1.0]), 0.0 * J, T, 0.0) == np.inf


def test_a_held_force_that_is_late_gives_energy():
    """Over a period of a cosine with the amplitude a, a spring force that is d samples old gives π k a² sin ω d T."""
    k, a, n, d = 100.0, 0.01, 400, 3
    x = a * np.cos(2 * np.pi * np.arange(-d, n + 1) / n)
    given = sum(work_of_held([-k * x[i]], [x[i + d + 1] - x[i + d]]) for i in range(n))
    # held for a sample it is half of one older
    assert given == pytest.approx(np.pi * k * a * a * math.sin(2 * np.pi * (d + 0.5) / n), rel=1e-3)


@pytest.fixture(scope="module")
def pressed():
    """The arm, 2.5 s after its goal behind the wall: units and the last signals."""
    overrides = ["controllers.hand.trajectory.back=false", "guard.stale=50 ms"]
    armed = ArmedRig(read_rig(RIG, overrides), [])
    armed.begin()
    rows, fault = armed.run(4000)
    armed.engine.close()
    assert fault == ""
    signals = armed.signals(rows)
    return {name: signals[:, k] for name, k in armed.names.items()}


def test_an_emulated_arm_gets_the_force_of_the_wall_once(pressed):
    last = {name: values[-1] for name, values in pressed.items()}
    depth, q1, q2 = -last["wall/gap"], last["shoulder/position"], last["elbow/position"]
    assert depth > 5e-3
    force = 400.0 * depth
    assert last["wall/normal_force"] == pytest.approx(force, rel=1e-3)
    # at rest the wall, whose normal is −y, balances the springs of the controller, which are all that the drives exert
    tip = 0.25 * math.cos(q1) + 0.22 * math.cos(q1 + q2), 0.22 * math.cos(q1 + q2)
    across = [-(0.25 * math.sin(q1) + 0.22 * math.sin(q1 + q2)), -0.22 * math.sin(q1 + q2)]
    friction = last["wall/friction_force"]
    for joint, arm, side, kp, goal in (
        ("shoulder", tip[0], across[0], 8.0, math.radians(30)),
        ("elbow", tip[1], across[1], 4.0, math.radians(60)),
    ):
        spring = kp * (goal - last[f"{joint}/position"])
        wall = last[f"{joint}/wall_effort"]
        # the point of contact is on the sphere: friction has 10 mm more of a lever
        assert wall == pytest.approx(-force * arm, abs=friction * (abs(side) + 0.011))
        assert spring + wall == pytest.approx(last[f"{joint}/command_effort"], abs=2e-3)
        assert last[f"{joint}/command_effort"] == pytest.approx(0.0, abs=0.02)
        assert last[f"{joint}/model_effort"] == pytest.approx(last[f"{joint}/effort"], abs=0.02)


def test_a_wall_that_is_soft_enough_takes_energy(pressed):
    for joint in ("shoulder", "elbow"):
        energy = pressed[f"{joint}/wall_energy"]
        assert energy.max() < 1e-3
        assert energy[-1] < -0.01
        # what the model takes is what the drive gives, but for errors of the estimated motion
        taken, given = (T * np.cumsum(pressed[f"{joint}/{power}"]) for power in ("model_power", "power"))
        assert np.abs(taken).max() > (0.02 if joint == "shoulder" else 0.0)
        assert pressed[f"{joint}/residual_energy"] == pytest.approx(taken - given, abs=5e-3)


LATE = ["controllers.hand.trajectory.back=false", "controllers.hand.kp=[4, 2]", "controllers.hand.kd=[0, 0]"]
LATE += ["mechanism.contacts.wall.friction=0", "joints.all.limits.tracking=3"]


@pytest.mark.parametrize(("delay", "happens"), [("0.1 ms", "completed"), ("20 ms", "stopped by wall_energy")])
def test_a_wall_that_gives_energy_stops_the_run(tmp_path, delay, happens):
    """Frames that come later than the bus says make it unstable."""
    faults = [{"kind": "delay", "delay": delay, "at": 0.6}]
    scenario = {"scenario": {"late": {"faults": faults, "expect": happens, "duration": 3.0}}}
    (tmp_path / "scenarios.yaml").write_text(yaml.safe_dump(scenario))
    (result,) = run_scenarios(ScenarioFiles(RIG, (tmp_path / "scenarios.yaml",), tuple(LATE)), jobs=1)
    assert result.failures == ()
    if result.sentence:
        assert "feels virtual contacts that have given 0.05" in result.sentence


def of(folder: Path, *overrides: str) -> Rig:
    (folder / "rig.yaml").write_text(RIG.read_text())
    return Rig(read_rig(folder / "rig.yaml", list(overrides)))


@pytest.mark.parametrize(
    "override",
    [
        "mechanism.contacts.wall.stiffness=460",
        "mechanism.contacts.wall.stiffness=rigid",
        "drivers.moteus.mode=position",
        "joints.elbow.limits.actions.effort=warn",
    ],
)
def test_what_drives_cannot_exert_is_refused(tmp_path, override, said):
    said(refusal(of, tmp_path, override))


SLIDES = """
name: slides
drivers:
  - type: moteus
    bus: {{interface: udp_multicast, channel: 239.74.163.9, fd: true, bitrate: 1 Mbit/s, data_bitrate: 5 Mbit/s}}
    joints: {{down: {{id: 1, ratio: 9, turns: kept}}}}
{load}
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {{name: carriage, joint: {first}, type: prismatic, axis: {axis}, mass: 1 kg, inertia: [1, 1, 1]}}
    - {{name: head, joint: {second}, type: prismatic, axis: {other}, parent: {parent}, mass: 1 kg, inertia: [1, 1, 1]}}
  contacts:
    - {{name: c, link: {touching}, sphere: 5 cm, at: [0, 0, 0.1], with: ground, friction: 0.3, {law}}}
joints:
  all: {{limits: {{lower: -1, upper: 1, velocity: 1, effort: 10 N}}, friction: {{coulomb: 0.1, viscous: 2}}}}
controllers: [{{name: off, type: push.py, joints: [down]}}]
schedule: {{step: 1 ms, duration: 1 s}}
"""
X, DOWN = "[1, 0, 0]", "[0, 0, -1]"
ACROSS = {"first": "across", "axis": X, "second": "down", "other": DOWN, "parent": "carriage", "touching": "head"}
BESIDE = {"first": "down", "axis": DOWN, "second": "across", "other": X, "parent": "base", "touching": "carriage"}
LOAD = """
  - name: load
    type: odrive
    bus: {interface: udp_multicast, channel: 239.74.163.5, bitrate: 1 Mbit/s}
    loads: {down: {id: 2, ratio: 9, torque_constant: 0.1 N*m/A, effort: 8 N, inertia: 0.1 kg}}
"""


def test_the_stiffness_that_is_offered_is_accepted(tmp_path):
    offered = re.search(r"at most ([\d.e+]+) N/m", refusal(of, tmp_path, "mechanism.contacts.wall.stiffness=1e5"))
    assert offered is not None
    of(tmp_path, f"mechanism.contacts.wall.stiffness={offered[1]}")


def slides(folder: Path, law: str, load: str = "", **how: str) -> Rig:
    return rig_in(folder, SLIDES.format(load=load, law=law, **how), push=controller("effort = 0.0 * q"))


@pytest.mark.parametrize("how", [ACROSS, BESIDE], ids=["across", "beside"])
def test_a_rigid_contact_that_given_motions_alone_close_is_refused(tmp_path, how, said):
    said(refusal(slides, tmp_path, "stiffness: rigid", **how))


def test_a_link_of_real_and_simulated_joints_has_no_virtual_contact(tmp_path, said):
    said(refusal(slides, tmp_path, "stiffness: 100, virtual: true", **ACROSS))


def efforts(rig: Rig, force: float) -> tuple[float, float]:
    """(required effort, part of it for virtual contacts) of the real slide, at rest with this normal force."""
    plant, t = rig.plant, 0.0
    x = plant.initial()
    x["contacts"] = x["contacts"] | {"force": np.array([0.0, 0.0, force])}
    found = plant.efforts(t, x, np.zeros(plant.model.nv))
    k = plant.model.dof_index("down")
    return float(found["effort"][k]), float(found["haptic_effort"][k])


@pytest.mark.parametrize(
    ("law", "load", "expected"),
    [
        # the model needs the force, which no drive exerts for the wall
        ("stiffness: 100", "", (5.0, 0.0)),
        # the load motor exerts minus the required effort: the force once
        ("stiffness: 100", LOAD, (5.0, 0.0)),
        ("stiffness: 100, virtual: true", LOAD, (5.0, 0.0)),
        # the drive exerts the force of the wall, −5 N, and the arm is not in a wall
        ("stiffness: 100, virtual: true", "", (0.0, -5.0)),
    ],
)
def test_the_force_of_a_contact_is_exerted_once(tmp_path, law, load, expected):
    rig = slides(tmp_path, law, load, **BESIDE)
    assert efforts(rig, 5.0) == pytest.approx(expected)
    assert rig.plant.haptic == (("down",) if expected[1] else ())
    assert ("down/wall_effort" in rig.tick_model.signals.names) == bool(expected[1])
    if rig.tick_model.loads:
        a, b = (load_efforts(rig.tick_model.loads, np.array([efforts(rig, f)[0], 0.0]), *np.zeros((2, 2)))
                for f in (5.0, 0.0))  # fmt: skip
        assert a - b == pytest.approx([-5.0])


def test_a_contact_of_a_load_motor_has_the_limit_of_its_delay(tmp_path):
    # 2 steps late where the rig gives no delay; friction 0.3: springs along and across, of which the slide feels one
    figures, _ = limits_of_walls(slides(tmp_path, "stiffness: 100", LOAD, **BESIDE))
    assert len(figures) == 1
    assert f"stable up to {2 * 2.0 / (1e-3 * 5):.4g} N/m" in figures[0]
    assert limits_of_walls(slides(tmp_path, "stiffness: 100", **BESIDE)) == ([], [])


def test_a_limit_of_energy_needs_a_virtual_contact(tmp_path, said):
    limit = "limits: {wall_energy: 1 J, "
    text = SLIDES.replace("limits: {{", limit.replace("{", "{{")).format(load="", law="stiffness: 100", **BESIDE)
    said(refusal(rig_in, tmp_path, text, push=controller("effort = 0.0 * q")))


def test_the_emulated_arm_has_no_wall():
    spec = read_rig(RIG)
    assert [contact.name for contact in spec.mechanism.description.contacts] == ["wall"]
    assert emulated_plant(spec).mechanism.description.contacts == ()


def test_a_limit_that_is_not_known_is_a_warning(tmp_path, said):
    rig = of(tmp_path, "joints.all.actuator.viscous=0")
    figures, doubts = limits_of_walls(rig)
    assert figures == []
    said(doubts)
    assert doubts[0] in [line for found in rig.warnings for line in found]


def test_a_run_does_not_begin_inside_of_a_wall(said):
    armed = ArmedRig(read_rig(RIG, ["joints.shoulder.initial.position=40 deg"]), [])
    with pytest.raises(RunError) as caught:
        armed.begin()
    armed.engine.close()
    said(str(caught.value))


SIMULATED = """
name: wall
mechanism:
  gravity: [0, 0, 0]
  bodies: [{{name: slide, type: prismatic, axis: [0, 0, -1], origin: {{xyz: [0, 0, 0.1]}}, mass: 1 kg}}]
  contacts:
    - {{name: c, link: slide, sphere: 5 cm, with: ground, friction: 0, stiffness: 1000 N/m, virtual: {virtual}}}
joints:
  slide: {{actuator: {{type: ideal}}, initial: {{velocity: 0.1}}}}
schedule: {{step: 1 ms, duration: 1 s}}
"""


def test_without_real_joints_a_virtual_contact_is_a_contact(tmp_path):
    one, other = (rig_in(tmp_path, SIMULATED.format(virtual=virtual)).run() for virtual in ("true", "false"))
    assert one["c/normal_force"].max() > 1.0
    for name in other.signals:
        assert np.array_equal(one[name], other[name]), name
