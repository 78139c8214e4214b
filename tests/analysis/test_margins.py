"""Margins and peaks of loops over all frequencies, against closed-loop eigenvalues, refined sweeps and runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import minimize_scalar

from cosim import Rig, analyze
from cosim.apps.analysis.between_ticks import crossing_after, highest
from cosim.apps.analysis.circle import SampledSystem, system_of
from cosim.apps.analysis.frequency import respond
from cosim.apps.analysis.linearisation import linearise
from cosim.apps.analysis.loops import (
    _balance,
    crossover_of,
    disk_margin,
    feedback_of,
    gain_margins,
    loop_figures,
    margins_of,
    phase_margins,
    sensitivity_peak,
)
from cosim.apps.analysis.measured import MeasuredResponse, beside
from cosim.apps.analysis.measured_margins import measured_crossover
from cosim.core.types import Array

LOOPS = 200
BEYOND = 1e-3  # relative: how far from a margin a loop is looked at
STEP = 1e-3

Loop = tuple[Array, Array, Array]  # A, b and c of L


def random_loops(channels: int = 1, count: int = LOOPS) -> list[Loop]:
    """Sampled modes with a damping down to 1e-5, some with an integrator, a free mass or an unstable pole, behind a
    delay of some ticks; closed they are stable."""
    random = np.random.default_rng(7)
    found = list[Loop]()
    while len(found) < count:
        blocks = list[Array]()
        for _ in range(random.integers(1, 4)):
            omega, damping = 10.0 ** random.uniform(0.5, 3.2), 10.0 ** random.uniform(-5.0, -0.3)
            blocks.append(np.array([[0.0, omega], [-omega, -2.0 * damping * omega]]))
        if random.random() < 0.5:
            blocks.append(np.array([[random.choice([0.0, -3.0, 2.0])]]))
        n = sum(map(len, blocks))
        A = np.zeros((n, n))
        at = 0
        for block in blocks:
            A[at : at + len(block), at : at + len(block)] = block
            at += len(block)
        b, c = random.normal(size=(n, channels)), random.normal(size=(channels, n))
        whole = expm(STEP * np.block([[A, b], [np.zeros((channels, n + channels))]]))
        loop = delayed((whole[:n, :n], whole[:n, n:], c), int(random.integers(0, 3)))
        gain = 10.0 ** random.uniform(-1.0, 3.0)
        for _ in range(30):
            if radius(loop, gain) < 1.0 - 1e-8:
                found.append((loop[0], gain * loop[1], loop[2]))
                break
            gain *= 0.6
    return found


def delayed(loop: Loop, ticks: int) -> Loop:
    """The loop with so many ticks of delay."""
    for _ in range(ticks):
        A, b, c = loop
        n, p = b.shape
        A = np.block([[A, np.zeros((n, p))], [c, np.zeros((p, p))]])
        loop = A, np.vstack([b, np.zeros((p, p))]), np.hstack([np.zeros((p, n)), np.eye(p)])
    return loop


def radius(loop: Loop, gain: complex = 1.0) -> float:
    """The largest |z| of the poles of the closed loop."""
    A, b, c = loop
    return float(np.abs(np.linalg.eigvals(A - gain * (b @ c))).max())


def feedback(loop: Loop) -> SampledSystem:
    """S − I = −c (z I − A + b c)⁻¹ b."""
    A, b, c = loop
    return system_of(A - b @ c, b, -c, np.zeros((len(c), len(c))))


def sensitivity(loop: Loop, angles: Array) -> Array:
    """(m,) S = 1 / (1 + L) from the open loop."""
    A, b, c = loop
    z = np.exp(1j * np.atleast_1d(angles))[:, None, None]
    return 1.0 / (1.0 + (c @ np.linalg.solve(z * np.eye(len(A)) - A, b[None].astype(complex)))[:, 0, 0])


def swept(loop: Loop) -> tuple[float, float]:
    """The highest |S| and |2 S − 1| of a sweep that is dense about the poles of the closed loop, its top refined."""
    A, b, c = loop
    closed = np.linalg.eigvals(A - b @ c)
    closed = closed[(np.abs(closed) > 1e-6) & (np.imag(closed) >= 0.0)]
    widths = np.abs(np.log(np.abs(closed)))
    about = np.angle(closed)[:, None] + widths[:, None] * np.tan(np.linspace(-1.57, 1.57, 80))
    theta = np.union1d(about, [*np.geomspace(1e-6, math.pi - 1e-9, 200), 1e-9])
    theta = theta[(theta > 0.0) & (theta < math.pi)]
    found = sensitivity(loop, theta)
    tops = list[float]()
    for figure in (lambda s: np.abs(s), lambda s: np.abs(2.0 * s - 1.0)):
        values = figure(found)
        k = int(values.argmax())
        low, high = theta[max(k - 1, 0)] - theta[k], theta[min(k + 1, len(theta) - 1)] - theta[k]
        refined: Any = minimize_scalar(
            lambda offset, k=k, figure=figure: -float(figure(sensitivity(loop, theta[k] + offset))[0]),
            bounds=(low, high),
            method="bounded",
            options={"xatol": 1e-6 * (high - low)},
        )
        tops.append(max(float(values[k]), -float(refined.fun)))
    return tops[0], tops[1]


@pytest.fixture(scope="module")
def loops() -> list[Loop]:
    return random_loops()


def test_a_gain_at_the_margin_makes_a_pole_leave_the_circle(loops: list[Loop]) -> None:
    """Stable up to 0.1 % before, and unstable 0.1 % beyond it."""
    both = [0, 0]
    for loop in loops:
        below, above = gain_margins(feedback(loop))
        for gain, none, side in ((above, math.inf, 1.0), (below, 0.0, -1.0)):
            found = gain != none
            both[0 if side > 0.0 else 1] += found
            last = gain * (1.0 - side * BEYOND) if found else 1e4**side
            assert all(radius(loop, factor) < 1.0 for factor in np.geomspace(1.0, last, 40))
            if found:
                assert radius(loop, gain) == pytest.approx(1.0, abs=1e-9)
                assert radius(loop, gain * (1.0 + side * BEYOND)) > 1.0
    assert min(both) > 5


def test_a_phase_at_the_margin_makes_a_pole_leave_the_circle(loops: list[Loop]) -> None:
    """A gain exp(jφ), with the eigenvalues of a complex matrix."""
    found = 0
    for loop in loops:
        phase, _ = phase_margins(feedback(loop), STEP)
        last = (1.0 - BEYOND) * phase if math.isfinite(phase) else math.pi
        for turn in np.linspace(0.0, last, 12):
            assert max(radius(loop, np.exp(1j * turn)), radius(loop, np.exp(-1j * turn))) < 1.0
        if math.isfinite(phase):
            found += 1
            beyond = phase * (1.0 + BEYOND)
            assert max(radius(loop, np.exp(1j * beyond)), radius(loop, np.exp(-1j * beyond))) > 1.0
    assert found > 50


def test_whole_ticks_of_delay_up_to_the_margin_leave_a_loop_stable(loops: list[Loop]) -> None:
    unstable = 0
    for loop in loops:
        _, delay = phase_margins(feedback(loop), STEP)
        most = min(20, math.ceil(delay / STEP * (1.0 - 1e-9)) - 1) if math.isfinite(delay) else 20
        assert all(radius(delayed(loop, ticks)) < 1.0 for ticks in range(1, most + 1))
        if most < 20:
            unstable += radius(delayed(loop, most + 1)) > 1.0
    assert unstable > 20


def test_peaks_are_those_of_a_refined_sweep(loops: list[Loop]) -> None:
    sharp = 0
    for loop in loops:
        own, (top, skewed) = feedback(loop), swept(loop)
        assert sensitivity_peak(own).value == pytest.approx(top, rel=1e-6)
        assert disk_margin(own, STEP).alpha == pytest.approx(min(2.0, 2.0 / skewed), rel=1e-6)
        sharp += skewed > 20.0
    assert sharp > 10


def test_a_crossover_has_the_gain_of_one(loops: list[Loop]) -> None:
    """And above it the gain stays below 1."""
    found = 0
    for A, b, c in loops:
        angle = crossover_of(feedback((A, b, c)))
        if math.isfinite(angle):
            found += 1
            theta = np.array([angle, *np.linspace(angle * (1.0 + 1e-6), math.pi, 500)])
            z = np.exp(1j * theta)[:, None, None]
            gain = np.abs((c @ np.linalg.solve(z * np.eye(len(A)) - A, b[None].astype(complex)))[:, 0, 0])
            assert gain[0] == pytest.approx(1.0, rel=1e-6) and gain[1:].max() < 1.0
    assert found > 50


def test_the_margin_of_loops_together_is_a_bound_at_all_frequencies() -> None:
    for loop in random_loops(3, 6):
        own = feedback(loop)
        found = disk_margin(own, STEP)
        bound = 2.0 / found.alpha
        theta = np.union1d(own.resonances, [*np.geomspace(1e-6, math.pi, 60), found.frequency * STEP])
        matrices = own.scaled(2.0, 1.0).at(theta)
        scales = [_balance(matrix) for matrix in matrices]
        sizes = [np.linalg.norm(m * s[:, None] / s, 2) for m, s in zip(matrices, scales, strict=True)]
        assert bound == pytest.approx(max(*sizes, 1.0), rel=1e-6)
        assert bound >= max(*sizes, 1.0) * (1.0 - 1e-12)


SPRING = """
mechanism:
  gravity: [0, 0, 0]
  bodies: [{name: s, type: prismatic, axis: [1, 0, 0], mass: 2, stiffness: 5000, damping: 1}]
joints: {s: {encoder: {delay: 1}}}
controllers: [{type: feedforward_pd, kp: KP, kd: KD}]
schedule: {step: 1 ms, duration: 60 s, integrator: rk4}
"""


def spring(gain: float) -> str:
    return SPRING.replace("KP", repr(900.0 * gain)).replace("KD", repr(0.5 * gain))


def test_a_run_decays_before_its_gain_margin_and_grows_beyond(rig_of: Callable[..., Rig]) -> None:
    """A damping of the closed loop of 0.0007: its resonance is narrower than a grid sees."""
    rig = linearise(rig_of(spring(1.0)))
    margins = margins_of(feedback_of(rig, [0]), rig.step)
    assert 20.0 * math.log10(margins.gain) == pytest.approx(1.411, abs=5e-4)  # by the largest eigenvalue
    assert margins.disk.alpha == pytest.approx(0.00904, abs=2e-5)
    for factor in (0.99, 1.01):
        run = rig_of(spring(margins.gain * factor), "joints.s.initial.velocity=0.01").run()
        amplitude = np.abs(np.asarray(run["s/position"]))
        ratio = amplitude[-1000:].max() / amplitude[:1000].max()
        assert ratio < 0.9 if factor < 1.0 else ratio > 1.1


def test_what_is_drawn_has_the_peaks(rig_of: Callable[..., Rig]) -> None:
    found = analyze(rig_of(spring(1.0)))
    (loop,), omega = found.loops, found.response.omega
    assert loop.margins is not None and loop.margins.disk.frequency in omega and loop.peak_frequency in omega
    drawn = np.abs(found.response.sensitivity[:, 0, 0])
    assert drawn.max() == pytest.approx(loop.peak_sensitivity, rel=1e-9)
    linear = found.rig
    np.testing.assert_allclose(respond(linear).omega[-1] * linear.step, math.pi)


def test_a_pendulum_on_its_head_needs_the_gain_that_gravity_asks(rig_of: Callable[..., Rig]) -> None:
    """A pole at z = 1 where k_p = m g l."""
    rig = linearise(
        rig_of("""
        mechanism:
          bodies: [{name: bob, joint: hinge, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, 0.5], inertia: [0.1, 0.1, 0.1]}]
        controllers: [{name: hold, type: feedforward_pd, kp: 20, kd: 3}]
        schedule: {step: 1 ms, duration: 1 s}
        """)
    )
    figures = loop_figures(rig, 0)
    assert figures.margins is not None
    assert figures.margins.gain_reduction == pytest.approx(9.81 * 0.5 / 20.0, rel=1e-3)


def test_measured_frequencies_that_miss_a_peak_cannot_tell(rig_of: Callable[..., Rig]) -> None:
    rig = linearise(rig_of(spring(1.0)))
    top = loop_figures(rig, 0).peak_frequency
    for seen, omega in ((False, np.array([0.5, 0.9, 1.1, 1.5]) * top), (True, np.array([0.5, 1.0, 1.5]) * top)):
        sensitivity = 1.0 + feedback_of(rig, [0]).at(omega * rig.step)[:, 0, 0]
        measured = beside(MeasuredResponse("s", omega, sensitivity, np.zeros(len(omega))), rig)
        assert (measured.hidden == "") is seen
        assert seen or measured.hidden.startswith("s: the linear rig has a peak |S| of 111 at ")
    assert math.isnan(measured_crossover(np.array([0.5, 0.4]), np.array([1.0, 2.0])))


def test_tops_and_crossings_lie_between_samples() -> None:
    """Of a sine with few samples in a period, at several phases."""
    for phase in np.linspace(0.0, 2.0 * math.pi, 17):
        t = np.arange(60)
        values = np.sin(2.0 * math.pi * t / 12.3 + phase)
        assert highest(values) == pytest.approx(1.0, abs=2e-3)
        rises = np.flatnonzero((values[:-1] < 0.0) & (values[1:] >= 0.0))
        np.testing.assert_allclose(np.diff(crossing_after(values, rises)), 12.3, atol=0.03)
    assert highest(np.array([1.0, 2.0, 3.0])) == 3.0 and highest(np.array([1.0, 1.0, 1.0])) == 1.0
