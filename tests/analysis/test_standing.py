"""Rigs whose contacts touch, linearised: against bodies on springs and against differences of steps."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cosim import InputError, Rig, load_rig
from cosim.apps.analysis.contact_states import contact_states
from cosim.apps.analysis.frequency import modes_of, poles
from cosim.apps.analysis.held_springs import Springs, without_held_springs
from cosim.apps.analysis.linearisation import linearise, memory_at
from cosim.apps.analysis.plant_steps import PlantSteps
from cosim.apps.analysis.signal_responses import signal_responses
from tests.kit.contact_rigs import body, contact_rig
from tests.kit.messages import Said

G = 9.81
MASS, INERTIA, A, B, K = 1.2, (0.01, 0.012, 0.014), 0.1, 0.1, 1e4  # kg, kg m², half edges [m], N/m of each spring
DEPTH = MASS * G / (4 * K)
CORNERS = [
    f"name: c{i}{j}, link: cube, point: [{i}0e-2, {j}0e-2, {-B}], with: ground, friction: 0.5, stiffness: {K}, "
    for i in (1, -1)
    for j in (1, -1)
]


def cube_on_springs(folder: Path, step: float, law: str = "restitution: 1") -> Rig:
    """A body at rest on four springs at its lower corners; with the restitution 1 they have no dampers."""
    bodies = [body("cube", MASS, INERTIA, (0.0, 0.0, B - DEPTH))]
    return contact_rig(folder, bodies, [corner + law for corner in CORNERS], 1.0, step)


def rocking(inertia: float) -> list[float]:
    """[rad/s] of a body that slides to and fro and rocks on the springs, whose tangential forces act in the middle of
    their depth, below its centre by b: from ½ Σ k (u − b θ)² + ½ Σ k a² θ² − ½ m g B θ²."""
    b = B - 0.5 * DEPTH
    stiffness = [[4 * K, -4 * K * b], [-4 * K * b, 4 * K * (b * b + A * A) - MASS * G * B]]
    return np.sqrt(np.linalg.eigvals(np.linalg.inv(np.diag([MASS, inertia])) @ stiffness)).tolist()


@pytest.mark.parametrize("at", [0.0, 0.01])
def test_a_body_on_springs_has_the_frequencies_of_its_springs(tmp_path: Path, at: float) -> None:
    expected = [math.sqrt(4 * K / MASS), math.sqrt(8 * K * A * A / INERTIA[2])]
    expected += [omega for inertia in INERTIA[:2] for omega in rocking(inertia)]
    rig = linearise(cube_on_springs(tmp_path, 1e-5), at)
    modes = [mode for mode in modes_of(rig) if mode.frequency]
    assert rig.exact and not any(mode.grows for mode in modes)
    assert [mode.frequency for mode in modes] == pytest.approx(sorted(expected), rel=2e-6)
    vertical = min(modes, key=lambda mode: abs(mode.frequency - expected[0]))
    assert vertical.frequency == pytest.approx(expected[0], rel=1e-6)


def test_the_pole_of_a_long_step_is_the_one_of_its_rule(tmp_path: Path) -> None:
    """v⁺ = v − h 4 k / m q⁺,  q⁺ = q + ½ h (v + v⁺), and a turn about the normal with springs s:
    s⁺ = s − h k u⁺, so that all of its force is of the end of the step."""
    h = 1e-3
    rig = linearise(cube_on_springs(tmp_path, h), 0.02)
    found = np.exp(poles(rig) * h)
    for stiffness, share in ((4 * K / MASS, 0.5), (8 * K * A * A / INERTIA[2], 1.0)):
        # q or s by v and v⁺: the position that the force is of is q + (1 − share) h v + share h v⁺
        left = np.array([[1.0, -share * h], [h * stiffness, 1.0]])
        right = np.array([[1.0, (1.0 - share) * h], [0.0, 1.0]])
        for z in np.linalg.eigvals(np.linalg.solve(left, right)):
            assert np.abs(found - z).min() < 1e-7


def sphere(law: str, velocity: tuple[float, ...]) -> tuple[list, list]:
    return [body("ball", 0.8, (0.003, 0.004, 0.005), (0.0, 0.0, 0.1), 0.2, velocity)], [
        f"name: c, link: ball, sphere: 0.1, with: ground, friction: {{static: 0.5, sliding: 0.4}}, {law}"
    ]


LAWS = ["stiffness: 2e4, restitution: 0.3", "stiffness: 2e4, torsional: 5e-3, rolling: 2e-3", "stiffness: rigid"]
STATES = {"sticks": (0.3, 0.1, 0.0, -1.0, 3.0, 0.4), "slides": (1.0, 0.5, 0.0, 1.0, -3.0, 2.0)}


@pytest.mark.parametrize("does", STATES)
@pytest.mark.parametrize("law", LAWS)
def test_the_slope_of_a_step_is_its_difference(tmp_path: Path, law: str, does: str) -> None:
    rig = contact_rig(tmp_path, *sphere(law, STATES[does]), duration=0.1)
    model, memory = rig.tick_model, memory_at(rig, 0.02)
    states = contact_states(model, memory)
    place = model.layout.place
    z = np.concatenate([[0.02], memory[place("plant").where], memory[place("request").where]])
    found = PlantSteps(model)(z)
    moving = np.concatenate(
        [
            np.r_[model.plant.layout.place(*path).where]
            for path in (("position",), ("velocity",), ("contacts", "spring"))
        ]
    )
    for column in moving:
        low, high = z.copy(), z.copy()
        low[1 + column] -= 1e-6
        high[1 + column] += 1e-6
        ends = [
            model.advance(x[0], x[1 : 1 + model.plant.layout.size], x[1 + model.plant.layout.size :])
            for x in (low, high)
        ]
        difference = (ends[1] - ends[0])[moving] / 2e-6
        assert np.abs(found[moving, 1 + column] - difference).max() < 1e-5 * max(1.0, np.abs(found[moving]).max())
    assert states.kinds == {"c": does} and not states.changing


LEG = """
name: leg
mechanism:
  ground: {xyz: [0, 0, -0.325]}
  bodies:
    - {name: hip, parent: base, joint: across, type: prismatic, axis: [1, 0, 0], mass: 2 kg,
       inertia: [0.01, 0.01, 0.01]}
    - {name: thigh, parent: hip, joint: swing, type: revolute, axis: [0, 1, 0], mass: 0.5 kg, com: [0, 0, -0.1],
       inertia: [2e-3, 2e-3, 1e-3]}
    - {name: foot, parent: thigh, joint: down, type: prismatic, axis: [0, 0, -1], mass: 0.3 kg,
       inertia: [1e-3, 1e-3, 1e-3]}
  contacts: [{name: sole, link: foot, sphere: 2 cm, with: ground, friction: 0.9, stiffness: 2e4}]
joints:
  down: {initial: {position: 30 cm}}
controllers:
  - {name: stand, type: pid, joints: [swing, down], kp: [60, 900], ki: 0, kd: [4, 60],
     trajectory: {type: quintic, goal: [0, 0.31], duration: 0.1 s}}
schedule: {step: 1 ms, duration: 3 s}
"""


def standing_leg(folder: Path) -> Rig:
    path = folder / "leg.yaml"
    path.write_text(LEG)
    return load_rig(path)


def test_a_leg_that_comes_to_rest_is_stable_and_its_springs_are_no_states_of_it(tmp_path: Path) -> None:
    rig = standing_leg(tmp_path)
    early, late = linearise(rig, 1.0), linearise(rig, 3.0)
    for linear in (early, late):
        assert not any("spring" in part for part in linear.states)
        assert not any(mode.grows for mode in modes_of(linear))
    assert np.sort(np.abs(poles(early)))[:4] == pytest.approx(np.sort(np.abs(poles(late)))[:4], rel=1e-3)


def test_springs_that_are_left_out_change_no_response() -> None:
    """A mass on a spring, whose force s and position x are both states: s + k x is constant."""
    h, m, k, d = 1e-3, 2.0, 4e3, 30.0
    v = np.array([-h * k / m * 0.0 + 0.0, 1.0 - h * d / m, h / m])  # of x, v, s
    advanced = np.array([[1.0, 0.0, 0.0] + h * v, v, np.array([0.0, 0.0, 1.0]) - h * k * v])
    inputs, outputs = np.array([[h * h / m], [h / m], [-h * h * k / m]]), np.array([[1.0, 0.0, 0.0]])
    for drift in (0.0, 1e-7):
        kept, A, B, C = without_held_springs(advanced, inputs, outputs, Springs(np.array([2]), np.array([k]), drift))
        assert kept.tolist() == [0, 1] and np.abs(np.linalg.eigvals(A) - 1.0).min() > 1e-3
        for z in np.exp(1j * np.array([0.01, 0.1, 1.0])):
            whole = outputs @ np.linalg.solve(z * np.eye(3) - advanced, inputs)
            assert C @ np.linalg.solve(z * np.eye(2) - A, B) == pytest.approx(whole, rel=1e-9)
    moving = without_held_springs(advanced, inputs, outputs, Springs(np.array([2]), np.array([k]), 1e-3))
    assert len(moving[0]) == 3


def test_steps_of_chosen_length_are_linearised_too(tmp_path: Path) -> None:
    rig = cube_on_springs(tmp_path, 1e-3)
    path = tmp_path / "rig.yaml"
    path.write_text(path.read_text().replace("schedule: {", "schedule: {substeps: auto, "))
    found = linearise(load_rig(path), 0.01)
    frequencies = [mode.frequency for mode in modes_of(found) if mode.frequency]
    assert not found.exact and linearise(rig, 0.01).exact
    assert np.abs(np.array(frequencies) - math.sqrt(4 * K / MASS)).min() < 1e-2 * math.sqrt(4 * K / MASS)


def test_what_is_said_of_contacts(tmp_path: Path, command: Any, said: Said) -> None:
    bodies, contacts = sphere(LAWS[0], STATES["slides"])
    contact_rig(
        tmp_path, bodies, [*contacts, "name: far, link: ball, point: [0, 0, 0.1], with: ground, friction: 0.1"], 0.3
    )
    out = command.prints("analyze", tmp_path / "rig.yaml", "--at", "0.02")
    said(out.splitlines()[1])


def test_a_response_has_no_contacts(tmp_path: Path, said: Said) -> None:
    rig = standing_leg(tmp_path)
    with pytest.raises(InputError) as error:
        signal_responses(rig.tick_model, memory_at(rig, 1.0), "swing/effort", ["swing/velocity"])
    said(str(error.value))
