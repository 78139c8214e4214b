"""Margins of the loops inside drives: against closed forms, python-control, and drives that really diverge."""

from __future__ import annotations

import copy
import math
from typing import Any

import control
import numpy as np
import pytest
from scipy.linalg import expm

from cosim import Rig, analyze
from cosim.apps.analysis.circle import SampledSystem
from cosim.apps.analysis.inner_loops import InnerLoopFigures, inner_loops
from cosim.apps.analysis.linearisation import memory_at, slopes_of
from cosim.core.types import Array
from cosim.execution.servo_loops import servo_loops
from cosim.rig.inspection import BEFORE_STEP, first_tick
from tests.kit.sampled_drives import CASES, MOTORS, RIGID, drive, rig_of

STABLE = [name for name in CASES if "unstable" not in name]
TURN = 2.0 * math.pi


def lifted(rig: Rig) -> dict[str, tuple[float, SampledSystem]]:
    """loop -> (period, S − I) of a rig with one drive."""
    model = rig.tick_model
    found = inner_loops(model, memory_at(rig, 0.0), slopes_of(model), model.plant.model.dof_names)
    return {name: (period, feedback) for _, name, period, feedback in found}


def closed(feedback: SampledSystem, factor: complex, delay: int = 0) -> float:
    """The largest |z| per hyper-period with a factor of the gain, and so many samples of delay."""
    A, B, C, D = feedback.A, feedback.B, feedback.C, feedback.D
    n, count = len(A), len(D)
    if not delay:
        return float(
            np.abs(
                np.linalg.eigvals(A + (factor - 1.0) * B @ np.linalg.solve(np.eye(count) - (factor - 1.0) * D, C))
            ).max()
        )
    # what the loop gives, v = C x + D d, takes effect `delay` samples later: d is that less v, sample by sample
    whole = np.eye(n + delay)
    x, d = whole[:n], list[Array]()
    queue = [whole[n + k] for k in range(delay)]
    for k in range(count):
        v = C[k] @ x + sum((D[k, j] * d[j] for j in range(k)), np.zeros(n + delay))
        queue.append(v)
        d.append(queue.pop(0) - v)
    after = A @ x + B @ np.array(d)
    return float(np.abs(np.linalg.eigvals(np.vstack([after, queue]))).max())


@pytest.mark.parametrize("late", [0, 1])
@pytest.mark.parametrize("motor", ["dc_machine", "pmsm"])
def test_a_current_loop_has_the_margins_of_its_closed_form(motor: str, late: int) -> None:
    """K (1 + T R / L / (z − 1)) z⁻ᵈ before the winding with a held voltage, by python-control; the axis d, and a DC
    machine whose joint does not move."""
    own = drive(motor, "effort", RIGID)
    own["loops"]["current"] = {"rate": 16000, "delay": late}
    own["motor"] = MOTORS[motor] | {"inertia": 1e6}
    figures = {found.loop: found for found in analyze(rig_of(own)).drives}
    found = figures["current" if motor == "dc_machine" else "current_d"]
    R, L = own["motor"]["resistance"], own["motor"].get("inductance", own["motor"].get("inductance_d"))
    T, K = 1.0 / 16000.0, TURN * 800.0 * L
    a = math.exp(-R * T / L)
    numerator = K * (1.0 - a) / R * np.array([1.0, T * R / L - 1.0])
    loop = control.tf(numerator, np.polymul([1.0, -1.0], [1.0, -a, *[0.0] * late]), T)
    assert found.period == pytest.approx(T, rel=1e-12)
    check_margins(found, loop)


def check_margins(found: InnerLoopFigures, loop: Any) -> None:
    """By python-control. loop: its transfer function L."""
    margins, T = found.margins, found.period
    omega = np.geomspace(10.0, math.pi / T * (1.0 - 1e-9), 5000)
    response = control.FRD(loop(np.exp(1j * omega * T)), omega, smooth=True)
    gains, phases, _, _, crossovers, _ = control.stability_margins(response, returnall=True)
    assert margins is not None and margins.gain_reduction == 0.0
    gains = np.append(gains, -1.0 / np.real(loop(-1.0)))  # at half of its rate
    assert margins.gain == pytest.approx(min(gains[gains > 1.0], default=math.inf), rel=1e-5)
    (phase,), (crossover,) = phases, crossovers
    assert found.crossover == pytest.approx(crossover, rel=1e-5)
    assert math.degrees(margins.phase) == pytest.approx(phase, rel=1e-5)
    assert margins.delay == pytest.approx(math.radians(phase) / crossover, rel=1e-5)
    sensitivity = 1.0 / (1.0 + loop(np.exp(1j * omega * T)))
    assert found.peak_sensitivity == pytest.approx(np.abs(sensitivity).max(), rel=1e-5)
    disk, *_ = control.disk_margins(loop, omega, skew=0.0)
    assert margins.disk.alpha == pytest.approx(disk, rel=1e-5)


def test_a_velocity_loop_has_the_margins_of_its_model_by_hand() -> None:
    """A DC machine with a rigid gear: four samples of the current loop per sample of the velocity loop, the motion
    between them by the exponential of i and ω."""
    N, R, L, K = 20.0, 1.0, 1e-3, 0.1 * 20.0  # K at the joint
    J, b, T, w = 0.12 + 0.1**2 + 2e-4 * N**2, 0.3, 1.0 / 16000.0, TURN * 800.0
    flow = np.array([[-b / J, K / J, 0.0], [-K / L, -R / L, 1.0 / L], [0.0, 0.0, 0.0]])
    motion = expm(flow * T)[:2]
    # (ω, i, next voltage, its integral) and the effort M that is requested
    sample = np.zeros((4, 5))
    sample[:2, :3] = motion
    sample[2] = [K, -w * L, 0.0, 1.0, w * L / K]
    sample[3] = [0.0, -w * R * T, 0.0, 1.0, w * R * T / K]
    whole = np.linalg.matrix_power(np.vstack([sample, np.eye(5)[4]]), 4)[:4]
    plant = control.ss(whole[:, :4], whole[:, 4:], np.eye(4)[:1], 0.0, 4.0 * T)
    share = 1.0 / (4000.0 * 0.06)
    loop = control.tf([10.0, 10.0 * (share - 1.0)], [1.0, -1.0], 4.0 * T) * control.ss2tf(plant)
    (found,) = [of for of in analyze(rig_of(drive("dc_machine", gears=RIGID))).drives if of.loop == "velocity"]
    assert found.period == pytest.approx(4.0 * T)
    check_margins(found, loop)


@pytest.mark.parametrize("name", STABLE)
def test_margins_are_where_a_pole_leaves_the_circle(name: str) -> None:
    """With gains, phases and delays of each loop; gains of velocity and position also by the exponential of the drive
    (`servo_loops`), with other equations."""
    rig = rig_of(*CASES[name])
    drives, systems = servo_loops(first_tick(rig, BEFORE_STEP)), lifted(rig)
    figures = {found.loop: found for found in analyze(rig).drives}
    assert figures.keys() == systems.keys() and {"velocity"} <= figures.keys()
    for loop, (period, feedback) in systems.items():
        margins = figures[loop].margins
        assert margins is not None and figures[loop].period == pytest.approx(period)
        for gain in (margins.gain_reduction, margins.gain):
            if 0.0 < gain < math.inf:
                assert closed(feedback, gain) == pytest.approx(1.0, abs=1e-7)
        between = np.geomspace(max(margins.gain_reduction, 1e-3) * 1.001, min(margins.gain, 1e3) * 0.999, 40)
        assert all(closed(feedback, gain) < 1.0 + 1e-9 for gain in between)
        if drives is not None and loop in ("position", "velocity"):
            for factor, stable in ((0.995, True), (1.005, False)):
                assert (drives.growth({(0, loop): factor * margins.gain})[0] < 1.0 + 1e-6) == stable
        turns = [np.exp(sign * 1j * margins.phase) for sign in (-1.0, 1.0)]
        assert max(closed(feedback, turn) for turn in turns) == pytest.approx(1.0, abs=1e-7)
        smaller = np.exp(1j * margins.phase * np.linspace(-0.999, 0.999, 40))
        assert all(closed(feedback, turn) < 1.0 + 1e-9 for turn in smaller)
        samples = margins.delay / period
        last = math.floor(samples * (1.0 + 1e-9))
        assert closed(feedback, 1.0, last) < 1.0 + 1e-9 < closed(feedback, 1.0, last + 1)
        low, high = margins.disk.gains
        assert margins.gain_reduction <= low * (1.0 + 1e-6) and high <= margins.gain * (1.0 + 1e-6)
        assert margins.disk.phase <= margins.phase * (1.0 + 1e-6)


def test_a_sample_of_delay_takes_a_sample_of_the_delay_margin() -> None:
    found = []
    for late in (0, 1):
        own = drive(mode="effort", gears=RIGID)
        own["loops"]["current"] = {"rate": 16000, "delay": late}
        (margins,) = [loop.margins for loop in analyze(rig_of(own)).drives if loop.loop == "current_d"]
        assert margins is not None
        found.append(margins.delay)
    assert found[0] - found[1] == pytest.approx(1.0 / 16000.0, rel=1e-6)


@pytest.mark.parametrize("name", ["elastic, velocity", "rigid, position", "a DC machine"])
def test_a_run_diverges_beyond_the_gain_margin(name: str) -> None:
    """1 % beyond the loop of velocity rings up, 1 % before it decays."""
    (margins,) = [found.margins for found in analyze(rig_of(*CASES[name])).drives if found.loop == "velocity"]
    assert margins is not None
    for factor, stable in ((0.99, True), (1.01, False)):
        (own,) = copy.deepcopy(CASES[name])
        own["loops"]["velocity"]["gain"] *= factor * margins.gain
        run = rig_of(own, goal=1e-6, duration="0.8 s").run(keep="all")
        speed = np.asarray(run["axis_0/motor_speed"])
        late, later = (float(np.ptp(speed[(run.t > begin) & (run.t < begin + 0.1)])) for begin in (0.3, 0.7))
        assert (later < late) == stable


def test_drives_on_a_link_that_gives_enough_have_the_same_margins() -> None:
    both = drive(mode="position"), drive("dc_machine", gears=RIGID)
    link = {"source": {"type": "diode_bridge", "voltage": 200, "resistance": 0.2}, "capacitance": 0.1}
    alone, linked = (analyze(rig_of(*both, link=each)).drives for each in (None, link))
    assert [(one.dof, one.loop) for one in linked] == [(one.dof, one.loop) for one in alone] and len(alone) == 6
    for one, other in zip(linked, alone, strict=True):
        assert one.margins is not None and other.margins is not None
        for figure in ("gain", "gain_reduction", "phase", "delay"):
            assert getattr(one.margins, figure) == pytest.approx(getattr(other.margins, figure), rel=1e-6)
        assert one.margins.disk.alpha == pytest.approx(other.margins.disk.alpha, rel=1e-6)


def test_loops_of_a_joint_that_a_brake_holds_are_seen_with_it_at_rest(sample: Any) -> None:
    """The brake of the sample opens later."""
    held, free = (analyze(sample("drives/servo_axis"), at) for at in (0.0, 0.3))
    assert all(loop.locked for loop in held.drives) and not any(loop.locked for loop in free.drives)
    assert [line for line in held.lines("axis") if line.startswith("locked    axis cannot move")]
    assert not [line for line in free.lines("axis") if line.startswith("locked")]
    assert {loop.loop for loop in free.drives} == {"position", "velocity", "current_d", "current_q"}


@pytest.mark.parametrize("name", ["elastic, position", "an encoder with an observer"])
def test_a_step_that_is_shorter_than_a_sample_changes_no_margin(name: str) -> None:
    """Of a position loop that runs in every second or fourth tick; the hyper-period is that of the drive."""
    expected = {found.loop: found for found in analyze(rig_of(*CASES[name])).drives}
    for step, substeps, ticks in (("0.5 ms", 8, 2), ("0.25 ms", 4, 4)):
        found = analyze(rig_of(*CASES[name], step=step, substeps=substeps))
        assert found.rig.ticks == ticks and len(found.drives) == len(expected)
        for loop in found.drives:
            of = expected[loop.loop].margins
            assert loop.margins is not None and of is not None
            assert loop.margins.gain == pytest.approx(of.gain, rel=1e-5)
            assert loop.margins.phase == pytest.approx(of.phase, rel=1e-5)
            assert loop.margins.delay == pytest.approx(of.delay, rel=1e-5)
            assert loop.margins.disk.alpha == pytest.approx(of.disk.alpha, rel=1e-5)
            assert loop.peak_sensitivity == pytest.approx(expected[loop.loop].peak_sensitivity, rel=1e-5)
