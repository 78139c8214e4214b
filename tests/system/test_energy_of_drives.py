"""The energy account of real joints and load motors: against integrals of the recorded signals and against theory."""

import math

import numpy as np
import pytest

from cosim.cli.run_summary import bond_lines
from cosim.control.bumpless_start import BumplessStart
from cosim.execution.hardware.driver_group import DriverGroup
from cosim.execution.python_engine import PythonEngine
from cosim.output.events import alarm_texts
from cosim.rig.rig import Rig, load_rig
from cosim.simulation.tick.arming import armed
from cosim.simulation.tick.virtual_plant import VirtualPlant
from tests.kit import engines
from tests.kit.hardware import HardwareStub
from tests.kit.rigs import rig_in

# an arm of inertia J = 0.02 kg·m² and damping b = 0.4 N·m·s/rad; the second rig has the gravity of the earth
RIG = """
mechanism:
  gravity: [0, 0, GRAVITY]
  bodies:
    - {name: arm, joint: elbow, axis: [0, 1, 0], mass: 0.3 kg, com: COM, inertia: [1, JY, 1], damping: 0.4}
joints: {elbow: {limits: {velocity: 20, effort: 100, LIMITS}}}
drivers:
  - type: moteus
    name: test
    observer: OBSERVER
    bus: {interface: virtual, channel: one, fd: true, bitrate: 8 Mbit/s, data_bitrate: 8 Mbit/s}
    joints: {elbow: {id: 1}}
LOADS
controllers: CONTROLLERS
schedule: {step: STEP, duration: 3 s, integrator: INTEGRATOR}
"""
LOADS = """
  - type: moteus
    name: load
    bus: {interface: virtual, channel: two, fd: true, bitrate: 8 Mbit/s, data_bitrate: 8 Mbit/s}
    loads: {elbow: {id: 1, effort: 50}}
"""
WORDS = {"gravity": 0, "jy": 0.02, "com": "[0, 0, 0]", "limits": "", "observer": 400, "loads": "", "controllers": "[]"}
WORDS |= {"integrator": "rk4"}
J, B = 0.02, 0.4
AMPLITUDE, RATE = 0.5, 5.0  # rad, rad/s
PERIOD = 2.0 * math.pi / RATE


def rig_with(tmp_path, step=1e-3, interpret=False, **words) -> Rig:
    text = RIG
    for name, value in (WORDS | {"step": step} | words).items():
        text = text.replace(name.upper(), str(value))
    return rig_in(tmp_path, text.replace("STEP", str(step)), interpret=interpret)


def motion(t):
    """Position, velocity, acceleration of a sine."""
    return (
        AMPLITUDE * math.sin(RATE * t),
        AMPLITUDE * RATE * math.cos(RATE * t),
        -AMPLITUDE * RATE**2 * math.sin(RATE * t),
    )


class Drive(HardwareStub):
    """A drive on an exact motion that reports effort(t), or after `delay` ticks what it was commanded; its samples are
    `age` s old."""

    joints = ("elbow",)
    age = 0.0

    def __init__(self, plant, effort=None, delay=0):
        self.plant, self.effort, self.delay = plant, effort, delay
        self.commands, self.stopped = [0.0] * (delay + 1), False

    def enable(self, mode):
        self.stopped = False

    def read(self, out, deadline_ns):
        t = self.plant.t_ns * 1e-9 - self.age
        out.position[:], out.velocity[:], _ = motion(t)
        out.effort[:] = self.commands[-self.delay] if self.effort is None else self.effort(t)
        out.t_ns = round(t * 1e9)

    def write(self, cmd, deadline_ns):
        self.commands.append(float(cmd.effort[0]))

    def stop(self):
        self.stopped = True

    close = stop


def run(rig, effort=None, delay=0, seconds=3.0, loaded=False):
    """(signals by name, with the time; why it stopped; the drives)."""
    plant = VirtualPlant(rig.tick_model)
    drives = [Drive(plant, effort, delay)]
    groups = [DriverGroup(drives[0], np.array([0]), real=True)]
    if loaded:
        drives = [Drive(plant, lambda t: 0.0), Drive(plant, effort, delay)]
        groups = [DriverGroup(drives[0], np.array([0]), real=True)]
        groups += [DriverGroup(drives[1], np.array([0]), real=True, load=True)]
    engine = engines.armed(PythonEngine(rig.tick_model, plant, groups))
    q, v, _ = motion(0.0)
    start = armed(rig.tick_model, BumplessStart.none(1), engine.view("plant"), np.array([q]), np.array([v]))
    for path in start:
        if path[0] in ("plant", "estimate"):
            engine.view(*path)[...] = start[path].reshape(engine.view(*path).shape)
    rows, fault = engine.run(round(seconds / rig.tick_model.step) + 1)
    values = rig.observe(engine.view("bumpless_start").copy(), rows)
    signals = dict(zip(rig.tick_model.signals.names, values.T, strict=True))
    return signals | {"t": np.arange(len(rows)) * rig.tick_model.step}, fault, drives


def exact_effort(rig):
    """t -> the effort that the exact motion takes."""
    model = rig.plant.model

    def effort(t):
        q, v, a = (np.array([value]) for value in motion(t))
        return float(np.asarray(model.inverse_dynamics(q, v, a))[0] + B * v[0])

    return effort


def trapezoidal(power, step):
    return np.concatenate([[0.0], np.cumsum(0.5 * (power[1:] + power[:-1])) * step])


def work_of_model(rig, signals):
    """J at the beginning of each tick, by Gauss quadrature of the inverse dynamics over the motion in each tick, which
    has the acceleration of its end and ends in the position and velocity of its end."""
    step, nodes = rig.tick_model.step, np.polynomial.legendre.leggauss(4)
    end_q, end_v, a = (signals[f"elbow/{name}"][1:] for name in ("position", "velocity", "acceleration"))
    done = np.zeros(len(a))
    for node, weight in zip(*nodes, strict=True):
        back = 0.5 * step * (1.0 - node)  # before the end of the tick
        q, v = end_q - back * end_v + 0.5 * back**2 * a, end_v - back * a
        effort = np.asarray(rig.plant.model.inverse_dynamics(q[:, None], v[:, None], a[:, None]))[:, 0] + B * v
        done += 0.5 * step * weight * effort * v
    return np.concatenate([[0.0], np.cumsum(done)])


def per_period(residual, step):
    """What a residual gains in the last period."""
    return residual[-1] - np.interp(len(residual) - 1 - PERIOD / step, np.arange(len(residual)), residual)


# --- the account agrees with the signals ----------------------------------------------------------------


@pytest.mark.parametrize("interpret", [False, True], ids=["compiled", "interpreted"])
def test_the_account_of_a_real_joint_is_that_of_its_recorded_signals(tmp_path, interpret):
    rig = rig_with(tmp_path, step=2e-3, interpret=interpret, gravity=-9.81, com="[0.2, 0, 0]", observer=60)
    signals, fault, _ = run(rig, lambda t: 2.0 * math.cos(3.0 * t), seconds=0.1 if interpret else 0.6)
    assert not fault
    power = signals["elbow/effort"] * signals["elbow/measured_velocity"]
    assert np.array_equal(signals["elbow/power"], power)
    assert np.array_equal(signals["elbow/model_power"], signals["elbow/model_effort"] * signals["elbow/velocity"])
    expected = work_of_model(rig, signals) - trapezoidal(power, 2e-3)
    assert np.abs(expected).max() > 0.01
    # RK4 integrates the power of gravity with an error, of the order of (rate · step)⁴
    np.testing.assert_allclose(signals["elbow/residual_energy"], expected, rtol=0, atol=2e-9)


def test_without_gravity_it_is_to_rounding(tmp_path):
    """The power is then a polynomial of degree 2 in a tick, which RK4 integrates exactly."""
    rig = rig_with(tmp_path)
    signals, _, _ = run(rig, lambda t: 2.0 * math.cos(3.0 * t), seconds=1.0)
    power = signals["elbow/effort"] * signals["elbow/measured_velocity"]
    expected = work_of_model(rig, signals) - trapezoidal(power, 1e-3)
    np.testing.assert_allclose(signals["elbow/residual_energy"], expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("integrator", ["semi_implicit_euler", "rosenbrock", "rodas4", "multirate"])
def test_other_integrators_find_the_same_work_with_their_own_error(tmp_path, integrator):
    words = {"gravity": -9.81, "com": "[0.2, 0, 0]", "observer": 60}
    rig = rig_with(tmp_path, integrator=integrator, **words)
    signals, fault, _ = run(rig, lambda t: 0.0, seconds=0.6)
    assert not fault
    expected = work_of_model(rig, signals)
    error = np.abs(signals["elbow/residual_energy"] - expected).max()
    assert error < (1e-2 if integrator == "semi_implicit_euler" else 1e-4) * np.abs(expected).max()


@pytest.mark.parametrize("interpret", [False, True], ids=["compiled", "interpreted"])
def test_the_account_of_a_load_motor_is_that_of_its_recorded_signals(tmp_path, interpret):
    rig = rig_with(tmp_path, interpret=interpret, loads=LOADS, gravity=-9.81, com="[0.2, 0, 0]")
    signals, fault, _ = run(rig, delay=3, seconds=0.1 if interpret else 0.6, loaded=True)
    assert not fault
    velocity = signals["elbow/load_measured_velocity"]
    assert np.array_equal(signals["elbow/load_measured_effort"][3:], signals["elbow/load_effort"][:-3])
    commanded, exerted = signals["elbow/load_effort"] * velocity, signals["elbow/load_measured_effort"] * velocity
    assert np.array_equal(signals["elbow/load_power"], commanded)
    assert np.array_equal(signals["elbow/load_measured_power"], exerted)
    expected = trapezoidal(exerted, 1e-3) - trapezoidal(commanded, 1e-3)
    assert np.abs(expected).max() > 1e-4
    np.testing.assert_allclose(signals["elbow/load_residual_energy"], expected, rtol=0, atol=1e-13)


# --- the account agrees with the theory -------------------------------------------------------------------


def lag(rig):
    """s by which the acceleration of the observer is late: 3 θ / (1 − θ) + 1 steps of its filter, and half a tick in
    which it is constant."""
    theta = math.exp(-2.0 * math.pi * float(rig.tick_model.bandwidths[0]) * rig.tick_model.step)
    return (3.0 * theta / (1.0 - theta) + 1.5) * rig.tick_model.step


def test_with_an_ideal_drive_the_residual_is_that_of_the_filter_and_vanishes_with_the_tick(tmp_path):
    """π J ω² A² sin(ω lag) per period, for a bandwidth that grows with the rate of the ticks."""
    found = []
    for step in (4e-3, 2e-3):
        rig = rig_with(tmp_path, step=step, observer=0.4 / step)
        signals, _, _ = run(rig, exact_effort(rig), seconds=1.5)
        found.append(per_period(signals["elbow/residual_energy"], step))
        expected = math.pi * J * (RATE * AMPLITUDE) ** 2 * math.sin(RATE * lag(rig))
    assert found[-1] == pytest.approx(expected, rel=0.08)
    orders = np.log2(np.array(found[:-1]) / np.array(found[1:]))
    assert orders == pytest.approx(1.0, abs=0.1)


def test_without_inertia_it_vanishes_with_the_square_of_the_tick(tmp_path):
    """Only positions and velocities take part: no acceleration is late."""
    found = []
    for step in (8e-3, 4e-3):
        rig = rig_with(tmp_path, step=step, observer=0.4 / step, jy=1e-9)
        signals, _, _ = run(rig, exact_effort(rig), seconds=1.5)
        found.append(per_period(signals["elbow/residual_energy"], step))
    orders = np.log2(np.array(found[:-1]) / np.array(found[1:]))
    assert orders == pytest.approx(2.0, abs=0.2)


class Simulated(Drive):
    """A simulated motor with an ideal torque loop on its own arm, without delay."""

    def read(self, out, deadline_ns):
        while self.arm.t_ns < self.plant.t_ns:
            self.arm.advance()
            self.arm.begin(self.arm.t_ns + self.arm.tick_model.step_ns)
        out.position[:], out.velocity[:], out.effort[:] = self.arm.measure()
        out.t_ns = self.arm.t_ns

    def write(self, cmd, deadline_ns):
        position, velocity, _ = self.arm.sample
        requested = cmd.kp * (cmd.position - position) + cmd.kd * (cmd.velocity - velocity) + cmd.effort
        self.arm.request(np.array([0]), requested)


def test_with_a_simulated_motor_the_residual_vanishes_with_the_tick(tmp_path):
    """Its effort is constant in a tick, known at the end of it: late by half a tick on average."""
    control = "[{type: feedforward_pd, kp: 4, kd: 0.4, trajectory: {type: sine, amplitude: 0.5, frequency: 0.8}}]"
    found = []
    for step in (4e-3, 2e-3):
        rig = rig_with(tmp_path, step=step, observer=0.4 / step, controllers=control, com="[0.2, 0, 0]", gravity=-9.81)
        plant = VirtualPlant(rig.tick_model)
        drive = Simulated(plant)
        drive.arm = VirtualPlant(load_rig(tmp_path / "rig.yaml", ["drivers=[]"]).tick_model)
        engine = engines.armed(PythonEngine(rig.tick_model, plant, [DriverGroup(drive, np.array([0]), real=True)]))
        rows, fault = engine.run(round(2.5 / step) + 1)
        assert not fault
        values = rig.observe(engine.view("bumpless_start").copy(), rows)
        found.append(np.abs(values[:, rig.tick_model.signals.names.index("elbow/residual_energy")]).max())
    assert found[0] < 0.1
    orders = np.log2(np.array(found[:-1]) / np.array(found[1:]))
    assert orders == pytest.approx(1.0, abs=0.2)


def test_a_torque_loop_that_is_n_ticks_late_loses_what_the_sine_loses(tmp_path, n=20):
    """The effort J a + b v, late by Δ, does π A² ω (b cos ωΔ + J ω sin ωΔ) in a period instead of π A² ω b."""
    rig, step = rig_with(tmp_path), 1e-3
    effort = exact_effort(rig)
    signals, _, _ = run(rig, lambda t: effort(t - n * step), seconds=1.5)
    late, lagging = RATE * n * step, RATE * lag(rig)
    scale = math.pi * AMPLITUDE**2 * RATE
    expected = scale * (B * (1.0 - math.cos(late)) + J * RATE * (math.sin(lagging) - math.sin(late)))
    assert per_period(signals["elbow/residual_energy"], step) == pytest.approx(expected, rel=0.03, abs=3e-4)


@pytest.mark.parametrize("age", [0.6e-3, 2e-3])
def test_the_age_of_samples_is_one_of_the_acceleration(tmp_path, monkeypatch, age):
    """Position and velocity are extrapolated by the age of a sample, the acceleration is not."""
    monkeypatch.setattr(Drive, "age", age)
    rig = rig_with(tmp_path)
    signals, fault, _ = run(rig, exact_effort(rig), seconds=1.5)
    assert not fault
    expected = math.pi * J * (RATE * AMPLITUDE) ** 2 * math.sin(RATE * (lag(rig) + age))
    assert per_period(signals["elbow/residual_energy"], 1e-3) == pytest.approx(expected, rel=0.1)


def test_a_load_motor_that_is_n_ticks_late_creates_what_the_sine_creates(tmp_path, n=20):
    """It is commanded −(J a + b v), and a brake that is late brakes less: what it does not take is positive."""
    rig, step = rig_with(tmp_path, loads=LOADS), 1e-3
    signals, _, _ = run(rig, delay=n, seconds=1.5, loaded=True)
    late, lagging = RATE * n * step, RATE * (lag(rig) - 0.5 * step)
    scale = math.pi * AMPLITUDE**2 * RATE
    inertial = J * RATE * (math.sin(late + lagging) - math.sin(lagging))
    expected = scale * (B * (1.0 - math.cos(late)) - inertial)
    found = per_period(signals["elbow/load_residual_energy"], step)
    assert found == pytest.approx(expected, rel=0.03, abs=3e-4)


def test_the_residual_is_positive_where_the_model_takes_more_than_the_drive_gives(tmp_path):
    rig = rig_with(tmp_path)
    effort = exact_effort(rig)
    for part, sign in ((0.5, 1.0), (1.5, -1.0)):
        signals, _, _ = run(rig, lambda t, part=part: part * effort(t), seconds=1.5)
        half = 0.5 * math.pi * AMPLITUDE**2 * RATE * B
        assert per_period(signals["elbow/residual_energy"], 1e-3) == pytest.approx(sign * half, rel=0.01)


# --- a drive that reports no effort, missing samples --------------------------------------------------------


def test_the_commanded_effort_stands_in_for_one_that_is_not_reported(tmp_path):
    rig = rig_with(tmp_path, controllers="[{type: passthrough, joints: [elbow], kp: 3, kd: 0.2}]")
    signals, fault, _ = run(rig, lambda t: math.nan, seconds=0.3)
    assert not fault and np.isnan(signals["elbow/effort"]).all()
    commanded = np.concatenate([[0.0], signals["elbow/command_effort"][:-1]])  # since the tick before
    assert np.abs(commanded).max() > 0.1
    power = commanded * signals["elbow/measured_velocity"]
    np.testing.assert_allclose(signals["elbow/power"], power, rtol=0, atol=1e-15)
    expected = work_of_model(rig, signals) - trapezoidal(power, 1e-3)
    np.testing.assert_allclose(signals["elbow/residual_energy"], expected, rtol=0, atol=1e-13)


def test_the_report_names_the_effort_that_stands_in():
    bond = {"residual": -0.0125, "residual_max": 0.25, "power_max": 7.5}
    summary = {
        "bonds": {"wheel-mechanism": bond},
        "real_joints": {"elbow": bond | {"effort": "commanded"}, "wrist": bond | {"effort": "reported"}},
        "load_motors": {"elbow": bond | {"effort": "reported"}},
    }
    figures = "residual energy -1.25e-02 J, at most 2.50e-01 J; power at most 7.5 W"
    assert bond_lines(summary) == [
        f"bond     wheel-mechanism: {figures}",
        f"bond     drive of elbow: {figures}, by the commanded effort: the drive reports none",
        f"bond     drive of wrist: {figures}",
        f"bond     load motor of elbow: {figures}",
    ]


def test_missing_samples_are_bridged_by_the_trapezoid_between_the_others(tmp_path):
    rig = rig_with(tmp_path)
    plant = VirtualPlant(rig.tick_model)
    drive = Drive(plant, lambda t: 2.0 * math.cos(3.0 * t))
    read = drive.read
    drive.read = lambda out, until: read(out, until) if round(plant.t_ns * 1e-6) % 4 == 0 else None
    engine = engines.armed(PythonEngine(rig.tick_model, plant, [DriverGroup(drive, np.array([0]), real=True)]))
    _, fault = engine.run(401)
    assert not fault
    done = engine.view("drive_work")[0]
    t = np.arange(0, 401, 4) * 1e-3
    power = np.array([2.0 * math.cos(3.0 * x) * motion(x)[1] for x in t])
    assert done == pytest.approx(trapezoidal(power, 4e-3)[-1], abs=1e-12)


# --- the limit -------------------------------------------------------------------------------------------


def test_the_limit_stops_the_run_and_the_motors(tmp_path, said):
    without, _, _ = run(rig_with(tmp_path), lambda t: 0.0, seconds=1.0)
    residual = np.abs(without["elbow/residual_energy"])
    tick = int(np.flatnonzero(residual > 0.5)[0])
    signals, fault, (drive,) = run(rig_with(tmp_path, limits="residual_energy: 0.5 J"), lambda t: 0.0, seconds=1.0)
    assert f"stopped at tick {tick} " in fault and f" {without['elbow/residual_energy'][tick]:.6g} J" in fault
    said(fault)
    assert len(signals["t"]) == tick + 1 and drive.stopped
    above = rig_with(tmp_path, limits=f"residual_energy: {residual.max() * 1.001}")
    _, fault, (drive,) = run(above, lambda t: 0.0, seconds=1.0)
    assert not fault and not drive.stopped


def test_the_limit_may_warn(tmp_path):
    rig = rig_with(tmp_path, limits="residual_energy: 0.5 J, actions: {residual_energy: warn}")
    assert not run(rig, lambda t: 0.0, seconds=1.0)[1]
    what = "elbow: residual energy beyond its limit of 0.5 J (warned)"
    assert alarm_texts(rig.tick_model)[0, "residual_energy"] == what


def test_the_limit_of_a_load_motor_stops_the_run_and_both_motors(tmp_path, said):
    without, _, _ = run(rig_with(tmp_path, loads=LOADS), delay=20, loaded=True, seconds=0.5)
    residual = without["elbow/load_residual_energy"]
    tick = int(np.flatnonzero(np.abs(residual) > 0.01)[0])
    rig = rig_with(tmp_path, loads=LOADS, limits="load_residual_energy: 0.01 J")
    signals, fault, drives = run(rig, delay=20, loaded=True, seconds=0.5)
    # the commands of a tick follow its guard
    assert f"stopped at tick {tick + 1} " in fault and f" {residual[tick]:.6g} J" in fault
    said(fault)
    assert len(signals["t"]) == tick + 2 and all(drive.stopped for drive in drives)
    above = rig_with(tmp_path, loads=LOADS, limits=f"load_residual_energy: {np.abs(residual).max() * 1.001}")
    assert not run(above, delay=20, loaded=True, seconds=0.5)[1]


def test_a_limit_has_no_effect_in_simulation(tmp_path):
    rig_with(tmp_path, limits="residual_energy: 1e-9", loads=LOADS)
    found = load_rig(tmp_path / "rig.yaml", ["drivers=[]", "joints.elbow.initial={velocity: 2}"]).run(0.1)
    assert found.summary["outcome"] == "finished"
    assert (found.summary["real_joints"], found.summary["load_motors"]) == ({}, {})
