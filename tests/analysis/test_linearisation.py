"""The linearised tick against central differences of the tick itself, and against textbook loops."""

from __future__ import annotations

import math
from collections.abc import Callable

import control
import numpy as np
import pytest

from cosim import InputError, Rig
from cosim.apps.analysis import linearisation
from cosim.apps.analysis.frequency import modes_of, poles, respond
from cosim.apps.analysis.linearisation import linearise, linearise_at, memory_at
from cosim.apps.analysis.loops import (
    DiskMargin,
    closed_dofs,
    disk_margin,
    feedback_of,
    gain_margins,
    is_stable,
    loop_figures,
    margins_of,
)
from cosim.apps.analysis.measured_margins import measured_margins
from cosim.apps.analysis.plant_steps import PlantSteps, unquantised
from cosim.apps.analysis.steps import step_response
from tests.kit.messages import Said
from tests.kit.refusals import refusal

Sample = Callable[..., Rig]

SERVO = """
mechanism:
  gravity: [0, 0, 0]
  bodies: [{name: disk, joint: hinge, axis: [0, 0, 1], mass: 1 kg, inertia: [0.1, 0.1, 0.2]}]
controllers:
  - {name: hold, type: feedforward_pd, kp: 80, kd: 6, trajectory: {type: quintic, goal: 1 rad, duration: 1 s}}
schedule: {step: 0.1 ms, duration: 1 s, integrator: rk4}
"""
J, KP, KD = 0.2, 80.0, 6.0


def differences(rig: Rig, at: float, monkeypatch: pytest.MonkeyPatch) -> tuple[np.ndarray, np.ndarray]:
    """(A by central differences of the interpreted tick without quantisation, A of `linearise`)."""
    found: list[np.ndarray] = []
    states_of = linearisation.observable
    monkeypatch.setattr(linearisation, "observable", lambda *a: found.append(states_of(*a)) or found[-1])
    memory, model = memory_at(rig, at), rig.tick_model
    exact = linearise_at(model, memory)
    assert exact.exact
    first = round(at / model.step)
    memory = linearisation.with_first_calls(model, memory)

    def tick(before: np.ndarray) -> np.ndarray:
        after = before.copy()
        with unquantised():
            for number in range(first, first + exact.ticks):
                after[model.layout.place("t").where] = number * model.step
                for task in (task for task in model.tasks if number % task.ticks == task.phase):
                    for call in task.calls:
                        linearisation.evaluate(call, after)
        return after

    inside = found[0] < len(memory)  # the others are disturbances that are held
    states, columns = found[0][inside], []
    for state in states:
        low, high = memory.copy(), memory.copy()
        width = 1e-6 * max(1.0, abs(memory[state]))
        low[state], high[state] = memory[state] - width, memory[state] + width
        columns.append((tick(high) - tick(low))[states] / (2.0 * width))
    return np.column_stack(columns), exact.A[np.ix_(inside, inside)]


@pytest.mark.parametrize(
    ("name", "at"),
    [
        ("ur5_sim", 0.5),
        ("two_link", 0.3),
        ("arm_sim", 0.4),
        ("mechanisms/parallelogram", 0.0),
        ("prescribed_wrist", 0.7),
    ],
)
def test_a_is_the_derivative_of_the_tick(sample: Sample, name: str, at: float, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, found = differences(sample(name), at, monkeypatch)
    assert len(found) and np.abs(found - expected).max() < 1e-6 * np.abs(expected).max()


GIVEN = """\
mechanism:
  {}
    - {{name: arm, axis: [0, 1, 0], mass: 1 kg, com: [0.2, 0, -0.5], inertia: [0.02, 0.02, 0.02]}}
joints:
  {}arm: {{actuator: {{type: ideal}}}}
controllers: [{{type: computed_torque, bandwidth: 5 Hz}}]
schedule: {{step: 10 ms, integrator: rk4}}
"""
TABLE = "{type: spline, points: [0.3, 0.1], times: [0.105 s, 0.4 s], degree: 3, ends: natural}"
CART = "bodies:\n    - {name: cart, type: prismatic, axis: [1, 0, 0], mass: 1 kg}"


@pytest.mark.parametrize("moved", ["joint", "base"])
@pytest.mark.parametrize("at", [0.0, 0.1])
def test_a_is_the_derivative_of_a_tick_with_a_table_and_its_breaks(
    rig_of: Callable[..., Rig], moved: str, at: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A motion given by a table, with a jump in the second tick."""
    joint = CART, f"cart: {{prescribed: {TABLE}}}\n  "
    base = f"moving_base: {{x: {TABLE}, pitch: {TABLE}}}\n  bodies:", ""
    expected, found = differences(rig_of(GIVEN.format(*(joint if moved == "joint" else base))), at, monkeypatch)
    assert len(found) and np.abs(found - expected).max() < 1e-6 * np.abs(expected).max()


@pytest.mark.parametrize("at", [0.0, 0.301])
def test_a_is_the_derivative_of_a_hyper_period(sample: Sample, at: float, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = sample("two_link", "controllers.swing.period=3 ms", "controllers.swing.phase=1 ms")
    expected, found = differences(rig, at, monkeypatch)
    assert len(found) and np.abs(found - expected).max() < 1e-6 * np.abs(expected).max()


def test_an_encoder_has_a_slope_in_spite_of_its_counts(rig_of: Callable[..., Rig]) -> None:
    encoder = "joints: {hinge: {encoder: {cpr: CPR, delay: 1}}}"
    coarse, fine = (linearise(rig_of(SERVO + encoder.replace("CPR", str(cpr))), 0.3) for cpr in (1000, 1_000_000))
    np.testing.assert_allclose(coarse.A, fine.A, rtol=1e-9, atol=1e-12)
    assert any(part == "encoders" for part in coarse.states)


def test_a_loop_has_the_margins_of_the_textbook(rig_of: Callable[..., Rig]) -> None:
    """L = (k_d s + k_p) / (J s²), with the delay of half a step of 0.1 ms that sampling costs."""
    rig = linearise(rig_of(SERVO), 0.5)
    figures = loop_figures(rig, 0)
    crossover = math.sqrt((KD**2 + math.sqrt(KD**4 + 4.0 * J**2 * KP**2)) / (2.0 * J**2))
    assert figures.crossover == pytest.approx(crossover, rel=1e-3)
    assert figures.margins is not None
    assert figures.margins.phase == pytest.approx(math.atan(KD * crossover / KP), abs=2e-3)
    assert figures.margins.delay == pytest.approx(figures.margins.phase / crossover, rel=1e-3)
    assert sorted(poles(rig), key=abs) == pytest.approx(sorted(np.roots([J, KD, KP]), key=abs), rel=5e-3)
    assert is_stable(rig)


def test_margins_are_those_of_python_control() -> None:
    """Of loops with a resonance and a delay, which cross 1 and the negative axis several times."""
    random = np.random.default_rng(0)
    omega = np.geomspace(0.1, 3000.0, 400)
    s = 1j * omega
    several = 0
    for _ in range(8):
        rigid = random.uniform(50.0, 2000.0) * (1.0 + s / random.uniform(5.0, 50.0)) / s**2
        elastic = 1.0 - 0.3 * s**2 / (random.uniform(50.0, 300.0) ** 2 + s**2 + 4.0 * s)
        loop = rigid * elastic * np.exp(-s * random.uniform(1e-4, 3e-3))
        gains, phases, _, _, crossovers, _ = control.stability_margins(control.frd(loop, omega), returnall=True)
        lag = np.radians(phases) % (2.0 * math.pi)
        expected = (
            min((gain for gain in gains if gain > 1.0), default=math.inf),
            max((gain for gain in gains if gain < 1.0), default=0.0),
            min(np.minimum(lag, 2.0 * math.pi - lag), default=math.inf),
            min(lag / crossovers, default=math.inf),
        )
        found = measured_margins(loop, omega)
        assert (found.gain, found.gain_reduction, found.phase, found.delay) == pytest.approx(expected, rel=1e-8)
        several += len(crossovers) > 1 and len(gains) > 1
    assert several


def test_a_loop_that_crosses_nothing_has_margins_without_end() -> None:
    found = measured_margins(np.full(20, 0.5 - 0.1j), np.geomspace(1.0, 100.0, 20))
    assert (found.gain, found.gain_reduction, found.phase, found.delay) == (math.inf, 0.0, math.inf, math.inf)


def test_a_closed_loop_steps_as_its_equation(rig_of: Callable[..., Rig]) -> None:
    """J q̈ + k_d q̇ + k_p q = k_p r: the damping acts on the velocity, which the reference does not change."""
    rig = linearise(rig_of(SERVO.replace("kd: 6", "kd: 2")), 0.5)
    t, found = step_response(rig, 0)
    sigma, omega = 2.0 / (2.0 * J), math.sqrt(KP / J - (2.0 / (2.0 * J)) ** 2)
    expected = 1.0 - np.exp(-sigma * t) * (np.cos(omega * t) + sigma / omega * np.sin(omega * t))
    assert np.abs(found - expected).max() < 5e-3
    step = loop_figures(rig, 0).step
    assert step is not None
    assert step.overshoot == pytest.approx(math.exp(-math.pi * sigma / omega), rel=1e-2)
    assert step.steady_state_error == pytest.approx(0.0, abs=1e-3)


def test_a_sampled_loop_that_alternates_is_unstable_beyond_its_gain(rig_of: Callable[..., Rig]) -> None:
    """ω⁺ = (1 − k_d T / J) ω: real and negative from k_d = J / T on, and below −1 from 2 J / T on."""
    limit = 2.0 * J / 1e-4
    for gain, stable in ((0.6 * limit, True), (0.99 * limit, True), (1.01 * limit, False)):
        rig = linearise(rig_of(SERVO.replace("kp: 80, kd: 6", f"kp: 1e-3, kd: {gain}")), 0.5)
        assert is_stable(rig) is stable
        assert np.isfinite(poles(rig)).all()


def test_a_brake_that_holds_at_the_start_holds_the_linear_rig(sample: Sample) -> None:
    """Of an arm that gravity would pull down; the brake closes in an event of the first tick."""
    rig = linearise(sample("drives/servo_axis"))
    assert is_stable(rig)
    np.testing.assert_allclose(rig.A, [[1.0, rig.step], [0.0, 1.0]], atol=1e-12)  # it neither falls nor swings


@pytest.mark.parametrize(("ki", "overshoot", "settling"), [(5.0, 3.494e-2, 10.297), (1.0, 8.027e-3, 1.8033)])
def test_a_slow_integral_part_is_in_the_step_figures(
    rig_of: Callable[..., Rig], ki: float, overshoot: float, settling: float
) -> None:
    """q / r = (k_p s + k_i) / (J s³ + (k_d + d) s² + k_p s + k_i): values of python-control for the continuous loop."""
    pid = f"type: pid, kp: 60, ki: {ki}, kd: 30"
    text = SERVO.replace("inertia: [0.1, 0.1, 0.2]", "inertia: [0.1, 0.1, 0.5], damping: 0.8")
    rig = linearise(rig_of(text.replace("type: feedforward_pd, kp: 80, kd: 6", pid)), 0.5)
    step = loop_figures(rig, 0).step
    assert step is not None
    assert step.overshoot == pytest.approx(overshoot, rel=5e-3)
    assert step.settling_time == pytest.approx(settling, rel=2e-3)
    assert step.steady_state_error == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize("name", ["two_link", "ur5_sim"])
def test_a_gain_margin_is_where_the_rig_becomes_unstable(sample: Sample, name: str) -> None:
    """The requested effort of the dof with the smallest margin, times a little less and a little more."""
    rig = linearise(sample(name), 0.3)
    margins = [gain_margins(feedback_of(rig, [k]))[1] for k in range(len(rig.dofs))]
    dof = int(np.argmin(margins))
    assert 1.0 < margins[dof] < 100.0
    for factor, stable in ((0.99, True), (1.01, False)):
        # u = g (u_c + d): d = (g − 1) u_c makes the loop g times as strong
        gain = margins[dof] * factor - 1.0
        feedback = np.outer(rig.B[:, dof], gain * rig.C[dof])
        assert bool(np.all(np.abs(np.linalg.eigvals(rig.A + feedback)) < 1.0)) is stable


def test_all_loops_together_have_no_larger_margin_than_each(sample: Sample) -> None:
    rig = linearise(sample("ur5_sim"), 0.5)
    alone = min(disk_margin(feedback_of(rig, [k]), rig.step).alpha for k in range(6))
    together = disk_margin(feedback_of(rig, range(6)), rig.step)
    assert 0.2 < together.alpha <= alone + 1e-9
    rng = np.random.default_rng(0)
    low, high = together.gains
    for _ in range(200):  # gains in all loops at once, within the margin
        gains = np.diag(np.exp(rng.uniform(math.log(low), math.log(high), 6)) - 1.0)
        A = rig.A + rig.B[:, :6] @ gains @ rig.C[:6]
        assert np.abs(np.linalg.eigvals(A)).max() < 1.0


def test_a_disk_margin_names_gains_and_phases() -> None:
    margin = DiskMargin(1.0)
    assert margin.gains == pytest.approx((1.0 / 3.0, 3.0))
    assert math.degrees(margin.phase) == pytest.approx(53.13, abs=0.01)
    assert DiskMargin(2.0).gains == (0.0, math.inf)


def test_the_exponential_of_a_plant_is_close_to_the_derivative_of_its_steps(sample: Sample) -> None:
    short = sample("ur5_sim", "schedule.substeps=8")
    model = short.tick_model
    (call,) = [call for task in model.tasks for call in task.calls if call.name == "advance"]
    memory = memory_at(short, 0.5)
    z = np.concatenate([memory[where] for where, _ in call.inputs])
    steps = PlantSteps(model)
    assert steps.exact
    by_steps = steps(z)
    steps._motion = steps._exponential
    by_exponential = steps(z)
    moving = np.concatenate(model.plant.state_places)
    columns = [*(1 + moving), *range(len(z) - model.nv, len(z))]
    scale = np.abs(by_steps[moving][:, columns]).max()
    assert (
        np.abs(by_exponential - by_steps)[moving][:, columns].max() < 2e-3 * scale
    )  # the slope itself changes within a tick


@pytest.mark.parametrize("name", ["drives/servo_axis", "drives/industrial_arm", "drives/electromechanical"])
def test_steps_of_chosen_number_are_replaced_by_an_exponential(sample: Sample, name: str) -> None:
    rig = linearise(sample(name), 0.5)
    assert not rig.exact and np.isfinite(rig.A).all()


def test_the_mode_of_a_pendulum_has_its_frequency(rig_of: Callable[..., Rig]) -> None:
    rig = rig_of(
        """
        mechanism:
          bodies: [{name: bob, joint: hinge, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5],
                    inertia: [0.01, 0.01, 0.01]}]
        schedule: {step: 1 ms, duration: 1 s}
        """
    )
    (mode,) = modes_of(linearise(rig))
    assert mode.frequency == pytest.approx(math.sqrt(9.81 * 0.5 / 0.26), rel=1e-6)
    assert abs(mode.damping) < 1e-6 and mode.part.endswith("of hinge")


def test_the_modes_of_a_linkage_obey_its_constraints(sample: Sample) -> None:
    """The drift that a closed loop allows in the coordinates of its tree is no mode: all of the boom's are stable."""
    rig = linearise(sample("drives/hydraulic_boom"), 0.2)
    assert not rig.exact and is_stable(rig)
    assert sum(mode.frequency == 0.0 for mode in modes_of(rig)) <= 3
    margins = margins_of(feedback_of(rig, [rig.dofs.index("piston")]), rig.step)
    assert 0.0 < margins.gain_reduction < 0.1 and 2.0 < margins.gain < 4.0  # its integral part needs some gain


def test_what_a_controller_remembers_is_no_growing_mode(sample: Sample) -> None:
    rig = linearise(sample("impedance/ur5_impedance"), 0.2)
    held = [mode for mode in modes_of(rig) if mode.frequency == 0.0]
    assert {mode.part for mode in held} == {"controller impedance"} and is_stable(rig)


SLOW = """
mechanism:
  gravity: [0, 0, 0]
  bodies: [{name: disk, joint: hinge, axis: [0, 0, 1], mass: 1 kg, inertia: [0.1, 0.1, 0.2]}]
controllers: [{name: hold, type: push.py, period: 10 ms, phase: PHASE ms}]
schedule: {step: 1 ms, duration: 1 s, integrator: rk4}
"""


@pytest.mark.parametrize("phase", [0, 3])
def test_a_slow_loop_is_that_of_a_sampled_double_integrator(rig_of: Callable[..., Rig], phase: int) -> None:
    """Position and velocity sampled and the effort held every 10 ms: x⁺ = F x + G u, u = −[kp kd] x."""
    rig = linearise(rig_of(SLOW.replace("PHASE", str(phase)), push=f"effort = -{KP} * q - {KD} * v"))
    T = 0.01
    F, G, K = np.array([[1.0, T], [0.0, 1.0]]), np.array([T * T / 2.0, T]) / J, np.array([KP, KD])
    assert rig.ticks == 10 and rig.step == pytest.approx(T) and rig.phases == (phase,)
    found = np.linalg.eigvals(rig.A)
    expected = np.sort_complex(np.linalg.eigvals(F - np.outer(G, K)))
    np.testing.assert_allclose(np.sort_complex(found[np.abs(found) > 1e-6]), expected, rtol=1e-6)
    response = respond(rig)
    z = np.exp(1j * response.omega * T)
    loop = np.array([K @ np.linalg.solve(at * np.eye(2) - F, G) for at in z])
    np.testing.assert_allclose(response.loop(0), loop, rtol=1e-5, atol=1e-9)


def test_a_loop_with_a_faster_controller_than_another_has_no_figures(rig_of: Callable[..., Rig]) -> None:
    rig = linearise(
        rig_of("""
        mechanism:
          bodies:
            - {name: a, joint: one, axis: [0, 0, 1], mass: 1 kg, inertia: [0.1, 0.1, 0.2]}
            - {name: b, joint: two, axis: [0, 0, 1], mass: 1 kg, inertia: [0.1, 0.1, 0.2]}
        controllers:
          - {name: fast, type: pid, joints: [one], kp: 9, ki: 0, kd: 1}
          - {name: slow, type: pid, joints: [two], kp: 9, ki: 0, kd: 1, period: 4 ms, phase: 1 ms}
        schedule: {step: 1 ms, duration: 1 s}
        """)
    )
    assert rig.phases == (None, 1) and closed_dofs(rig) == [1] and is_stable(rig)


def test_real_motors_have_no_linear_model(sample: Sample, said: Said) -> None:
    said(refusal(linearise, sample("arm_can")))


def test_periods_that_coincide_late_are_refused(rig_of: Callable[..., Rig], said: Said) -> None:
    text = """
    mechanism:
      bodies:
        - {name: a, joint: one, axis: [0, 0, 1], mass: 1 kg, inertia: [0.1, 0.1, 0.2]}
        - {name: b, joint: two, axis: [0, 0, 1], mass: 1 kg, inertia: [0.1, 0.1, 0.2]}
    controllers:
      - {name: slow, type: pid, joints: [one], kp: 9, ki: 0, kd: 1, period: 37 ms}
      - {name: slower, type: pid, joints: [two], kp: 9, ki: 0, kd: 1, period: 41 ms}
    schedule: {step: 1 ms, duration: 1 s}
    """
    said(refusal(linearise, rig_of(text)))


def test_a_controller_in_python_has_no_derivative(rig_of: Callable[..., Rig]) -> None:
    text = SERVO.split("controllers:")[0] + "controllers: [{name: own, type: push.py}]\n"
    rig = rig_of(text, push="effort = -q if q[0] > 0 else -v")
    with pytest.raises(
        InputError, match=r"^analyze: controller 'own' has no derivative: .*push\.py:\d+: a Python `if`"
    ):
        linearise(rig)
