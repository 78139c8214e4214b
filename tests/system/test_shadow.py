"""The simulated twins of real joints on a bench in simulated time: 15 min without a fault, and faults of each kind.

The bench has masses 3 % and friction 5 % above the model's, an encoder with noise and 16 bit, and samples that
are one tick late. The limits are twice the largest residuals of five minutes without a fault.
"""

from pathlib import Path

import numpy as np
import pytest

from cosim import load_rig
from cosim.cli.describe import describe
from cosim.control.shadow import RESIDUALS
from cosim.core import ops
from cosim.execution.hardware.driver_group import DriverGroup
from cosim.execution.python_engine import PythonEngine
from cosim.simulation.tick.virtual_plant import VirtualPlant
from tests.kit.bench_rig import Bench, largest_residuals, on_bench, run_on
from tests.kit.engines import armed
from tests.kit.hardware import HardwareStub
from tests.kit.rigs import rig_in, signal_units

RIGS = Path(__file__).parents[2] / "rigs"
RIG = """
mechanism:
  bodies:
    - {name: upper, joint: shoulder, axis: [0, 1, 0], mass: MASS1, com: [120 mm, 0, 0],
       inertia: [0.0006, 0.0058, 0.0058]}
    - {name: forearm, parent: upper, joint: elbow, origin: {xyz: [250 mm, 0, 0]}, axis: [0, 1, 0], mass: MASS2,
       com: [110 mm, 0, 0], inertia: [0.0002, 0.0026, 0.0026]}
joints:
  all:
    actuator: {type: dc_motor, resistance: 0.1 ohm, inductance: 200 uH, torque_constant: 0.1 N*m/A, ratio: 9,
               rotor_inertia: 0.4 kg*cm^2, voltage_limit: 24 V, current_limit: 20 A, viscous: VISCOUS,
               bandwidth: 200 Hz}
    OWN
  LIMITS
schedule: {step: 1 ms, duration: 3 s, substeps: 2}
"""
REAL = """
guard: {shadow: {}}
controllers:
  - type: feedforward_pd
    kp: [60, 12]
    kd: [3, 0.6]
    trajectory: {type: sine, amplitude: [0.6, 0.8], frequency: [0.4, 0.55], ramp: 1}
drivers:
  - type: moteus
    bus: {interface: virtual, channel: one, fd: true, bitrate: 8 Mbit/s, data_bitrate: 8 Mbit/s}
    joints: {shoulder: {id: 1}, elbow: {id: 2}}
"""
OWN = "limits: {lower: -170 deg, upper: 170 deg, velocity: 8 rad/s, effort: 10 N*m}"
ENCODER = "encoder: {noise: 5e-5, cpr: 65536, delay: 1}"
# of the shoulder, of the elbow
LIMITS = {
    "shadow_effort": (0.285, 0.076),
    "shadow_drive": (0.027, 0.0176),
    "shadow_position": (7.2e-4, 7.4e-4),
    "shadow_slip": (1.86e-3, 3.03e-3),
}
QUARTER, FAULT = 900.0, 5.0  # s


def rig_with(folder, scale=1.0, *overrides):
    """The rig; scale: of its limits."""
    lines = [
        f"{joint}: {{limits: {{{', '.join(f'{key}: {scale * values[k]:.6g}' for key, values in LIMITS.items())}}}}}"
        for k, joint in enumerate(("shoulder", "elbow"))
    ]
    words = {"MASS1": 0.9, "MASS2": 0.5, "VISCOUS": 0.05, "OWN": OWN, "LIMITS": "\n  ".join(lines)}
    return rig_in(folder, text_with(RIG + REAL, words), *overrides)


def text_with(text, words):
    for name, value in words.items():
        text = text.replace(name, str(value))
    return text


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """The simulated bench of the rig."""
    folder = tmp_path_factory.mktemp("bench")
    words = {"MASS1": 0.9 * 1.03, "MASS2": 0.5 * 1.03, "VISCOUS": 0.05 * 1.05, "OWN": ENCODER, "LIMITS": ""}
    return on_bench(rig_with(folder), rig_in(folder, text_with(RIG, words)))


@pytest.fixture(scope="module")
def limited(tmp_path_factory):
    """The rig with its limits."""
    return rig_with(tmp_path_factory.mktemp("limited"))


@pytest.fixture(scope="module")
def loose(tmp_path_factory):
    """The rig with limits that nothing exceeds."""
    return rig_with(tmp_path_factory.mktemp("loose"), 100.0)


# --- without a fault ---


def test_a_quarter_of_an_hour_without_a_fault_stays_within_the_limits(limited, bench):
    _, fault, ticks = largest_residuals(limited, Bench(bench), QUARTER)
    assert (fault, ticks) == ("", 900_001)


def test_the_limits_are_twice_the_largest_residuals_of_a_good_run(loose, bench):
    largest, _, _ = largest_residuals(loose, Bench(bench), 300.0)
    for key, limit in LIMITS.items():
        np.testing.assert_allclose(limit, 2.0 * largest[key.removeprefix("shadow_")], rtol=0.05, err_msg=key)


# --- faults ---

ELBOW = np.array([0.0, 1.0])


def since(t):
    """1 at the elbow from the fault on."""
    return ops.where(t >= FAULT, 1.0, 0.0) * ELBOW


class Jump(Bench):
    """The encoder has moved by 5 mrad."""

    def measured(self, t, q, v):
        return q + 5e-3 * since(t), v


class Noise(Bench):
    """The encoder has an error of up to 2 mrad, another one in every tick."""

    def measured(self, t, q, v):
        return q + 2e-3 * since(t) * ops.sin(1e9 * t * t), v


class Freeze(Bench):
    """The encoder stays where it was in the run without a fault."""

    at = np.zeros(2)

    def measured(self, t, q, v):
        frozen = since(t) > 0.5
        return ops.where(frozen, self.at, q), ops.where(frozen, 0.0, v)


class Drift(Bench):
    """The position drifts by 20 mrad/s; the velocity comes from another sensor."""

    def measured(self, t, q, v):
        return q + 0.02 * (t - FAULT) * since(t), v


class DriftOfBoth(Bench):
    """Position and velocity come from one encoder, which drifts."""

    def measured(self, t, q, v):
        return q + 0.02 * (t - FAULT) * since(t), v + 0.02 * since(t)


class Slip(Bench):
    """The coupling slips by 20 mrad/s between the motor, whose velocity is measured, and the joint."""

    def measured(self, t, q, v):
        return q, v + 0.02 * since(t)


class Friction(Bench):
    """Dry friction of 0.15 N·m."""

    def load(self, t, q, v):
        return -0.15 * since(t) * v / ops.sqrt(v * v + 1e-3)


class Payload(Bench):
    """150 g at 0.2 m."""

    def load(self, t, q, v):
        return 0.15 * 9.81 * 0.2 * ops.cos(q[0] + q[1]) * since(t)


class Jam(Bench):
    """A stop of 50 N·m/rad beyond 0.2 rad."""

    def load(self, t, q, v):
        return since(t) * ops.where(q > 0.2, -50.0 * (q - 0.2) - v, 0.0)


class Lost(Bench):
    """The gear carries no load any more: gravity does not act on the motor."""

    def load(self, t, q, v):
        return -0.5 * 1.03 * 9.81 * 0.11 * ops.cos(q[0] + q[1]) * since(t)


class Weak(Bench):
    """The torque constant is 30 % lower, and the drive computes the effort from its current."""

    def requested(self, t, request):
        return request * (1.0 - 0.3 * since(t))

    def reported(self, t, effort, request):
        return effort / (1.0 - 0.3 * since(t))


class WeakMeasured(Weak):
    """The same; the drive measures the effort."""

    def reported(self, t, effort, request):
        return effort


# what the reason says, and within how many s after the fault; the size of each fault is in its class
POSITION = "from where its motion predicts it, beyond its limit of 0.00074 rad; check its encoder and its mounting"
SLIP = "more motion than its measured velocity gives, beyond its limit of 0.00303 rad; check its encoder for drift"
EFFORT = "acted on it beside its twin, beyond its limit of 0.076 N*m; check its load, its friction, for an obstruction"
DRIVE = "beside its twin, beyond its limit of 0.0176 N*m; check the torque constant, the current limit and the supply"
FAULTS = {
    Jump: (POSITION, 0.001),
    Noise: (POSITION, 0.01),
    Freeze: (EFFORT, 0.1),
    Drift: (SLIP, 0.2),
    Slip: (SLIP, 0.3),
    DriftOfBoth: (EFFORT, 10.0),
    Friction: (EFFORT, 0.15),
    Payload: (EFFORT, 0.1),
    Jam: (POSITION, 1.0),
    Lost: (EFFORT, 0.1),
    Weak: (EFFORT, 0.15),
    WeakMeasured: (DRIVE, 0.05),
}


@pytest.mark.parametrize("kind", FAULTS, ids=lambda kind: kind.__name__)
def test_a_fault_is_found_within_its_time(limited, loose, bench, kind):
    (reason, within), found = FAULTS[kind], kind(bench)
    if kind is Freeze:
        good, _ = run_on(loose, Bench(bench), FAULT)
        object.__setattr__(found, "at", np.array([good[f"{j}/measured_position"][-1] for j in ("shoulder", "elbow")]))
    signals, fault = run_on(limited, found, FAULT + within)
    after = (len(signals["elbow/position"]) - 1) * 1e-3 - FAULT
    assert "joint 'elbow'" in fault and reason in fault
    assert -1e-9 <= after <= within


def test_with_half_the_limits_a_run_without_a_fault_stops(tmp_path, bench):
    _, fault, _ = largest_residuals(rig_with(tmp_path, 0.49), Bench(bench), 300.0)
    assert "beyond its limit" in fault


# --- drivers around it ---


class Drives(HardwareStub):
    """Both drives of the bench, in lockstep with the ticks; skipped [ns]: when the program sleeps for 20 ticks."""

    joints = ("shoulder", "elbow")

    def __init__(self, plant, model, skipped=()):
        self.plant, self.bench, self.skipped = plant, VirtualPlant(model), skipped
        self.ahead_ns = 0  # time that the ticks have not seen

    def read(self, out, deadline_ns):
        out.position[:], out.velocity[:], out.effort[:] = self.bench.measure()
        out.t_ns = self.plant.t_ns + self.ahead_ns

    def write(self, cmd, deadline_ns):
        self.bench.request(np.array([0, 1]), self.plant.view("request"))
        late = 20 if self.plant.t_ns in self.skipped else 0
        self.ahead_ns += late * 1_000_000
        for _ in range(1 + late):
            self.bench.advance()
            self.bench.begin(self.bench.t_ns + 1_000_000)
            self.bench.measure()


class Clock:
    """The time of the drives."""

    def __init__(self, drives):
        self.drives = drives

    def now(self):
        return self.drives.plant.t_ns + self.drives.ahead_ns

    due = now


def run_in_python(rig, model, seconds, skipped=()):
    """(signals by name, why the run stopped or "")."""
    plant = VirtualPlant(rig.tick_model)
    drives = Drives(plant, model, skipped)
    engine = armed(PythonEngine(rig.tick_model, plant, [DriverGroup(drives, np.array([0, 1]), real=True)]))
    clock = Clock(drives)
    read = engine.hardware_manager.read
    engine.hardware_manager.read = lambda until, now, due: read(until, clock.now, clock.due())
    rows, fault = engine.run(round(seconds * 1e3) + 1)
    values = rig.observe(engine.view("bumpless_start").copy(), rows)
    return dict(zip(rig.tick_model.signals.names, values.T, strict=True)), fault


def test_the_python_engine_finds_the_same_residuals(loose, bench):
    found, fault = run_in_python(loose, bench, 0.5)
    expected, _ = run_on(loose, Bench(bench), 0.5)
    assert not fault
    for joint in ("shoulder", "elbow"):
        for name in RESIDUALS:
            values = expected[f"{joint}/shadow_{name}"]
            np.testing.assert_allclose(
                found[f"{joint}/shadow_{name}"], values, rtol=0, atol=1e-6 * np.abs(values).max()
            )


def test_time_that_the_ticks_have_not_seen_is_no_fault(limited, bench):
    """20 ms without a tick, in which the elbow moves by 20 mrad."""
    slept = frozenset(range(1_500_000_000, 2_000_000_000, 250_000_000))
    signals, fault = run_in_python(limited, bench, 2.0, slept)
    assert fault == ""
    moved = np.abs(np.diff(signals["elbow/measured_position"])).max()
    assert moved > 20.0 * LIMITS["shadow_position"][1]


def test_a_warning_is_reported_and_the_run_continues(tmp_path, bench):
    rig = rig_with(tmp_path, 1.0, "guard.actions.shadow_effort=warn", "guard.actions.shadow_drive=warn")
    signals, fault = run_on(rig, Friction(bench), 8.0)
    assert fault == "" and np.abs(signals["elbow/shadow_effort"]).max() > 0.12


def test_without_twins_a_tick_computes_nothing_for_them(tmp_path):
    text = text_with(
        RIG + REAL.replace("guard: {shadow: {}}", ""), {"MASS1": 1, "MASS2": 1, "VISCOUS": 0, "LIMITS": ""}
    )
    plain = rig_in(tmp_path, text.replace("OWN", OWN))
    assert not plain.plant.twins and not any("shadow" in name for name in plain.tick_model.signals.names)
    calls = [call.name for task in plain.tick_model.tasks for call in task.calls]
    assert not any("shadow" in name for name in calls)


def test_a_rig_with_twins_is_described(limited, capsys):
    describe(limited)
    out = capsys.readouterr().out
    assert "shadow_position 0.00072 rad" in out and "the drive of joint '" in out


def test_signals_of_the_actuator_are_those_of_its_twin(tmp_path):
    """Its output `drive` is not the residual of the drive."""
    more = "drivers=[{type: moteus, bus: {interface: virtual, channel: x, fd: true}, joints: {output: {id: 1}}}]"
    limits = "joints.output.limits.velocity=100", "joints.output.limits.effort=500"
    rig = load_rig(RIGS / "drives" / "gear_efficiency.yaml", [more, "guard.shadow={}", *limits])
    names = {name for name in rig.tick_model.signals.names if "twin_" in name or "shadow_" in name}
    residuals = {f"output/shadow_{name}" for name in RESIDUALS}
    assert residuals < names and "output/twin_drive" in names - residuals
    units = signal_units(rig)
    assert (units["output/twin_efficiency"], units["output/shadow_drive"]) == ("1", "N*m")
