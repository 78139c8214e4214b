"""Real joints in a simulated mechanism: they move as measured, and a load motor applies the load of the arm."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from cosim.core.errors import InputErrors, RunError
from cosim.core.types import Limits
from cosim.execution.hardware.driver_group import DriverGroup
from cosim.execution.python_engine import PythonEngine
from cosim.plugins.drivers import sim
from cosim.rig.rig import load_rig
from cosim.simulation.tick.virtual_plant import VirtualPlant
from tests.kit.hardware import HardwareStub
from tests.kit.refusals import raised

ARM = """
mechanism:
  gravity: [0, 0, -9.81]
  bodies:
    - {name: upper, joint: shoulder, axis: [0, 1, 0], mass: 2, com: [0.2, 0, 0], inertia: [0.01, 0.03, 0.03]}
    - {name: lower, joint: elbow, origin: {xyz: [0.4, 0, 0]}, axis: [0, 1, 0], mass: 1, com: [0.15, 0, 0],
       inertia: [0.005, 0.01, 0.01]}
joints:
  all: {limits: {velocity: 20, effort: 100}}
  elbow: {initial: {position: 0.3}ELBOW}
DRIVERS
controllers:
  - {type: passthrough, joints: [shoulder], kp: 80, kd: 8}
schedule: {step: 1 ms, duration: 2 s}
"""
DRIVERS = """
drivers:
  - {type: moteus, bus: {interface: virtual, channel: none, fd: true}, joints: {elbow: {id: 1}}}
"""
CONTROLLER = "{type: computed_torque, joints: [elbow], bandwidth: 3 Hz}"
SINE = "{type: sine, amplitude: 0.5, frequency: 0.7, ramp: 0.4}"


class Played(HardwareStub):
    """A driver whose joints move as a given function of time, measured `late` s ago."""

    limits = Limits(*np.array([[-9.0], [9.0], [20.0], [100.0]]))
    joints = ("elbow",)

    def __init__(self, virtual_plant, motion, late=0.0):
        self.virtual_plant, self.motion, self.late = virtual_plant, motion, late
        self.commands = []

    def read(self, out, deadline_ns):
        t = self.virtual_plant.t_ns * 1e-9 - self.late
        out.position[:], out.velocity[:] = self.motion(t)
        out.effort[:], out.t_ns = 0.5, round(t * 1e9)

    def write(self, cmd, deadline_ns):
        self.commands.append(cmd.effort.copy())


@pytest.fixture
def arm(tmp_path):
    """arm(**words) -> the rig, with the words in its text."""

    def load(**words):
        text = ARM
        for word in ("DRIVERS", "ELBOW"):
            text = text.replace(word, words.get(word.lower(), ""))
        (tmp_path / "arm.yaml").write_text(text)
        return load_rig(tmp_path / "arm.yaml", ["schedule.realtime=yes"] if "drivers" in words else [])

    return load


def run_played(rig, motion, ticks, late=0.0, start=None, feedback_until=np.inf):
    """(rows, why it stopped, engine) of a rig whose elbow is played; start: its motion at arming."""
    virtual_plant = VirtualPlant(rig.tick_model)
    group = real(rig, virtual_plant, motion, late)
    read = group.driver.read
    group.driver.read = lambda out, until: read(out, until) if virtual_plant.t_ns < feedback_until * 1e9 else None
    engine = engine_of(rig, virtual_plant, group)
    begin(engine, virtual_plant, start or motion)
    return *engine.run(ticks), engine


def played(rig, motion, ticks, late=0.0):
    """(signals by name, engine)."""
    rows, fault, engine = run_played(rig, motion, ticks, late)
    assert not fault
    return signals_of(rig, engine, rows), engine


def signals_of(rig, engine, rows):
    values = rig.observe(engine.view("bumpless_start").copy(), rows)
    return dict(zip(rig.tick_model.signals.names, values.T, strict=True))


def engine_of(rig, virtual_plant, *groups):
    """With a simulated shoulder beside these groups."""
    index = np.array([rig.joints.index("shoulder")])
    shoulder = DriverGroup(sim.load(("shoulder",), index, rig.limits.at(index), virtual_plant), index)
    return PythonEngine(rig.tick_model, virtual_plant, [shoulder, *groups])


def real(rig, virtual_plant, motion, late=0.0):
    return DriverGroup(Played(virtual_plant, motion, late), np.array([rig.joints.index("elbow")]), real=True)


def begin(engine, virtual_plant, motion):
    """As at arming, without waiting for a new answer of the played drive."""
    engine.open()
    engine.arm()
    plant = engine.tick_model.plant
    position, velocity = motion(0.0)
    state = plant.start_from_measured(
        plant.layout.unpack(engine.view("plant").copy()), np.array([position]), np.array([velocity])
    )
    engine.view("plant")[:] = plant.layout.pack(state)


def motion_of(rig):
    """t -> (position, velocity) of the elbow as the rig prescribes it."""
    trajectory = rig.plant.prescribed["elbow"]

    def motion(t):
        sample = trajectory.sample(t)
        return float(sample["position"][0]), float(sample["velocity"][0])

    return motion


@pytest.mark.parametrize("late", [0.0, 0.8e-3])
def test_a_real_joint_moves_the_others_as_a_prescribed_one_does(arm, late):
    """Its acceleration is observed, so forces come a few milliseconds late; how old samples are is accounted for."""
    expected = arm(elbow=f", prescribed: {SINE}")
    run = expected.run()
    signals, _ = played(arm(drivers=DRIVERS), motion_of(expected), len(run.t), late)
    after = run.t > 0.6  # the ramp is over
    for name, tolerance in (("shoulder/position", 4e-3), ("elbow/position", 1e-4), ("elbow/velocity", 0.02)):
        assert np.abs(signals[name] - run[name])[after].max() < tolerance
    for name, same in (("elbow/model_effort", "elbow/effort"), ("elbow/acceleration", "elbow/acceleration")):
        assert np.abs(signals[name] - run[same])[after].max() < 0.1 * np.abs(run[same]).max()
    assert np.array_equal(signals["elbow/effort"], np.full(len(run.t), 0.5))
    assert np.abs(signals["elbow/age"] - late).max() < 1e-6


@pytest.mark.parametrize("late", [5e-3, 30e-3])
def test_the_estimate_of_late_samples_does_not_diverge(arm, late):
    """However long the step is for the bandwidth of the observer: it corrects the state at the time of the sample."""
    exact = motion_of(arm(elbow=f", prescribed: {SINE}"))
    rig = load_rig(arm(drivers=DRIVERS).spec.path, ["schedule.realtime=yes", "schedule.step=10 ms", "guard.stale=1 s"])
    assert rig.tick_model.bandwidths[0] * rig.tick_model.step == 0.5
    signals, _ = played(rig, exact, 200, late)
    t = np.arange(200) * 10e-3
    expected = np.array([exact(x) for x in t])
    after = t > 0.6
    assert np.abs(signals["elbow/position"] - expected[:, 0])[after].max() < 5e-3
    assert np.abs(signals["elbow/velocity"] - expected[:, 1])[after].max() < 0.4


def test_without_a_new_measurement_the_estimate_is_extrapolated(arm):
    """Missing samples are bridged by the last velocity and acceleration."""
    expected = arm(elbow=f", prescribed: {SINE}")
    exact = motion_of(expected)
    seen = []

    def with_gaps(t):
        tick = round(t * 1e3)
        seen.append(tick - tick % 7)
        return exact(seen[-1] * 1e-3)

    rig = arm(drivers=DRIVERS)
    virtual_plant = VirtualPlant(rig.tick_model)
    group = real(rig, virtual_plant, with_gaps)
    read = group.driver.read

    def every_seventh(out, deadline_ns):
        read(out, deadline_ns)
        out.t_ns = seen[-1] * 1_000_000

    group.driver.read = every_seventh
    engine = engine_of(rig, virtual_plant, group)
    begin(engine, virtual_plant, exact)
    rows, fault = engine.run(2000)
    assert not fault
    values = signals_of(rig, engine, rows)["elbow/position"]
    t = np.arange(2000) * 1e-3
    assert np.abs(values - [exact(x)[0] for x in t])[300:].max() < 2e-3


def test_drives_of_real_joints_get_the_command_of_the_controller(arm):
    """… and the command is recorded."""
    text = "controllers=[{type: passthrough, joints: [elbow], kp: 10, kd: 1}]"
    rig = load_rig(arm(drivers=DRIVERS).spec.path, ["schedule.realtime=yes", text])
    signals, engine = played(rig, lambda t: (0.1 * t, 0.1), 50)
    driver = engine.drivers[1][0]
    t = np.arange(50) * 1e-3
    expected = 10 * (0.3 - 0.1 * t) - 0.1
    np.testing.assert_allclose(signals["elbow/command_effort"], expected, atol=1e-12)
    assert len(driver.commands) == 50


def test_a_drive_without_new_feedback_is_not_armed(arm):
    """What was heard before the order to arm does not count."""
    rig = arm(drivers=DRIVERS)
    virtual_plant = VirtualPlant(rig.tick_model)
    group = real(rig, virtual_plant, lambda t: (0.0, 0.0))
    engine = engine_of(rig, virtual_plant, group)
    engine.open()
    with pytest.raises(RunError, match="the drives of elbow report no position; check their power and their bus"):
        engine.start_from_measured(0.5, 0)


def test_stale_measurements_stop_the_run(arm, said):
    rows, fault, _ = run_played(arm(drivers=DRIVERS), lambda t: (0.3, 0.0), 100, feedback_until=5e-3)
    assert len(rows) == 4 + 20 + 2
    said(fault)


# --- a dynamometer --------------------------------------------------------------------------------

BENCH = Path(__file__).parents[2] / "rigs" / "dynamometer"


class OnBench(HardwareStub):
    """A motor of the simulated bench, commanded without a protocol."""

    def __init__(self, bench, joint, cell):
        self.joints, self.bench, self.k, self.cell = ("elbow",), bench, joint, cell

    def read(self, out, deadline_ns):
        if not self.k:  # the first of the two takes the bench along
            while self.bench.t_ns < self.cell.t_ns:
                self.bench.advance()
                self.bench.begin(self.bench.t_ns + self.bench.tick_model.step_ns)
        position, velocity, effort = (values[self.k] for values in self.bench.measure())
        out.position[:], out.velocity[:], out.effort[:] = position, velocity, effort
        out.t_ns = self.bench.t_ns

    def write(self, cmd, deadline_ns):
        position, velocity = (values[self.k] for values in self.bench.sample[:2])
        requested = cmd.kp * (cmd.position - position) + cmd.kd * (cmd.velocity - velocity) + cmd.effort
        self.bench.request(np.array([self.k]), requested)


def test_a_motor_on_a_dynamometer_moves_as_in_the_arm():
    """The shaft with its load motor takes the motion that the elbow has in simulation, by the same efforts."""
    rig = load_rig(BENCH / "elbow.yaml")
    alone = load_rig(BENCH / "elbow.yaml", ["drivers=[]"]).run(4.0)
    bench = VirtualPlant(load_rig(BENCH / "bench.yaml", ["drivers=[]"]).tick_model)
    virtual_plant, index = VirtualPlant(rig.tick_model), np.array([rig.joints.index("elbow")])
    motor = DriverGroup(OnBench(bench, 0, virtual_plant), index, real=True)
    load = DriverGroup(OnBench(bench, 1, virtual_plant), np.array([0]), real=True, load=True)
    engine = engine_of(rig, virtual_plant, motor, load)
    begin(engine, virtual_plant, lambda t: (0.0, 0.0))
    rows, fault = engine.run(4001)
    assert not fault
    signals = signals_of(rig, engine, rows)
    after = alone.t > 0.3
    error = np.abs(signals["elbow/position"] - alone["elbow/position"])[after].max()
    assert error < 0.02 * np.ptp(alone["elbow/position"])
    requested, expected = signals["elbow/command_effort"][after], alone["elbow/command_effort"][after]
    assert np.abs(requested - expected).max() < 0.2 * np.abs(expected).max()
    assert np.abs(signals["elbow/load_effort"]).max() > 0.3  # the arm hangs in it


def test_the_load_effort_is_bounded_and_finite():
    from cosim.control.load_emulation import load_efforts

    (load,) = load_rig(BENCH / "elbow.yaml").tick_model.loads
    assert (load.rotor, load.inertia, load.viscous, load.effort) == (pytest.approx(0.4e-4 * 81), 0.00484, 0.05, 8.0)
    zero = np.zeros(2)
    for effort, expected in ((3.0, -3.0), (100.0, -8.0), (-100.0, 8.0), (np.nan, 0.0), (np.inf, 0.0)):
        assert load_efforts([load], np.array([0.0, effort]), zero, zero).tolist() == [expected]
    moving = load_efforts([load], np.array([0.0, 1.0]), np.array([0.0, 2.0]), np.array([0.0, 10.0]))
    assert moving == pytest.approx([(0.00324 + 0.00484) * 10.0 + 0.05 * 2.0 - 1.0])


# --- what is noticed of real joints -----------------------------------------------------------------


# (limits of the elbow, its motion, ticks until it stops)
STOPS = {
    # no joint is faster than its limit; what seems to be is an encoder
    "jumps": ("", lambda t: (0.3 + 0.4 * (t > 0.0105), 0.0), 11),
    # 0.1 rad, at 2 rad/s
    "should move": (", limits: {lower: -1, upper: 1}", lambda t: (0.3, 2.0), 50),
    # which the drive measures
    "at its effort limit": (", limits: {effort: 0.5}", lambda t: (0.3, 0.0), 1000),
}


@pytest.mark.parametrize("case", STOPS)
def test_a_real_joint_that_does_what_it_should_not_stops_the_run_by_default(arm, said, case):
    limits, motion, tick = STOPS[case]
    _, fault, _ = run_played(arm(drivers=DRIVERS, elbow=limits), motion, 1500)
    assert fault.startswith(f"stopped at tick {tick} (t = {tick / 1000:g} s): joint 'elbow' ")
    said(fault)


def test_lack_of_feedback_is_no_standstill(arm):
    """The last measurement stays while the elbow should move by 1 m/s: the cause is the feedback."""
    rig = arm(drivers=DRIVERS, elbow=", limits: {lower: -1, upper: 1}")
    rig.tick_model.guard = dataclasses.replace(rig.guard, stale=np.array([np.inf, 0.15]))
    _, fault, _ = run_played(rig, lambda t: (0.3, 1.0), 500, feedback_until=5e-3)
    assert "joint 'elbow' has sent no feedback for" in fault


def test_simulated_joints_have_no_limits_of_standstill_by_default(arm):
    rig = arm(drivers=DRIVERS)
    assert np.isfinite(rig.guard.bounds["stall"]).tolist() == [False, True]
    assert not rig.guard.uses_reference[0]


def test_a_load_motor_with_different_motion_stops_the_run(said):
    rig = load_rig(BENCH / "elbow.yaml")
    virtual_plant, index = VirtualPlant(rig.tick_model), np.array([rig.joints.index("elbow")])
    motor = DriverGroup(Played(virtual_plant, lambda t: (0.5 * t, 0.5)), index, real=True)
    for speed, trips in ((0.5, False), (-0.5, False), (-1.0, True)):
        load = DriverGroup(
            Played(virtual_plant, lambda t, speed=speed: (0.0, speed)), np.array([0]), real=True, load=True
        )
        engine = engine_of(rig, virtual_plant, motor, load)
        begin(engine, virtual_plant, lambda t: (0.0, 0.5))
        _, fault = engine.run(20)
        assert bool(fault) == trips
    said(fault)


@pytest.mark.parametrize("motion", [(4.0, 0.0), (0.3, 25.0)], ids=["position", "velocity"])
def test_a_joint_that_would_stop_the_first_tick_is_not_armed(arm, said, motion):
    rig = load_rig(
        arm(drivers=DRIVERS).spec.path, ["joints.elbow.limits={lower: -3, upper: 3, velocity: 20, effort: 9}"]
    )
    virtual_plant = VirtualPlant(rig.tick_model)
    engine = engine_of(rig, virtual_plant, real(rig, virtual_plant, lambda t: motion))
    engine.open()
    times = iter(range(1, 100))
    read = engine.drivers[1][0].read

    def anew(out, deadline_ns):
        read(out, deadline_ns)
        out.t_ns = next(times)

    engine.drivers[1][0].read = anew
    said(raised(RunError, engine.start_from_measured, 0.5, 0))


@pytest.mark.parametrize("mode", ["velocity", "position"])
def test_drives_with_their_own_gains_ignore_those_of_commands(arm, mode):
    """Only the feedforward is cut then: what the gains would ask for is not taken from it."""
    drivers = DRIVERS.replace("{type: moteus,", f"{{type: moteus, mode: {mode},")
    limits = "joints.elbow.limits={velocity: 20, effort: 1}"
    efforts = []
    for gains in ("kp: 500, kd: 5", "kp: 0, kd: 0"):
        text = f"controllers=[{{type: feedforward_pd, joints: [elbow], {gains}}}]"
        rig = load_rig(arm(drivers=drivers).spec.path, ["schedule.realtime=yes", text, limits])
        signals, engine = played(rig, lambda t: (0.1, 0.0), 20)
        efforts.append(np.array(engine.drivers[1][0].commands)[:, 0])
        assert np.array_equal(signals["elbow/command_effort"], efforts[-1])
    assert np.array_equal(*efforts) and (np.abs(efforts[0]) > 0.1).all()  # kp · 0.2 rad would be 100 N·m


@pytest.mark.parametrize("mode", ["velocity", "position"])
def test_computed_torque_is_refused_where_the_drive_closes_a_loop(arm, said, mode):
    path = arm(drivers=DRIVERS).spec.path
    text = path.read_text().replace("{type: passthrough, joints: [shoulder], kp: 80, kd: 8}", CONTROLLER)
    assert text.count(CONTROLLER) == 1
    path.write_text(text)
    assert load_rig(path).spec.controllers[0].joints == ("elbow",)
    path.write_text(text.replace("{type: moteus,", f"{{type: moteus, mode: {mode},"))
    said(raised(InputErrors, load_rig, path))
