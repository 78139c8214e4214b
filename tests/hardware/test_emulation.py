"""Emulated drives: their motors, what goes wrong with them, the loop that serves their lines, the rig behind them."""

import math
from collections import deque
from contextlib import contextmanager
from pathlib import Path

import pytest

from cosim.core.errors import InputError, InputErrors, RunError
from cosim.execution.hardware.emulation.fault_injection import FaultyConnection, InjectedFault
from cosim.execution.hardware.emulation.motors import EmulatedMotors
from cosim.execution.hardware.emulation.server import BEHIND_NS, MAX_ITEMS, EmulatedConnection, EmulationServer
from cosim.plugins.drivers.transport import CanFrame
from cosim.rig import emulate
from cosim.rig.emulate import emulation_of
from cosim.rig.sections.rig_spec import read_rig
from cosim.rig.wiring.wired_rig import WiredRig
from tests.hardware.emulation_helpers import Plant, motor_of, spec, wired
from tests.kit.clock import MS, FakeClock

# --- the loop ---------------------------------------------------------------------------------------


class Wire:
    """A line: inbox holds (time when it comes [ns after the begin], item)."""

    def __init__(self, clock, *inbox):
        self.clock, self.begun, self.inbox, self.sent, self.log = clock, clock.time, deque(inbox), [], []
        self.broken = None

    def open(self):
        self.log.append("open")
        if self.broken == "open":
            raise InputError("no such line")

    def bus_off(self):
        pass

    def close(self):
        self.log.append("close")

    def reopen(self):
        self.log.append("reopen")

    def receive(self, until):
        if self.broken == "receive":
            self.broken = None
            raise RunError("unplugged")
        if self.inbox and self.begun + self.inbox[0][0] <= max(until, self.clock.time):
            t_ns, item = self.inbox.popleft()
            self.clock.time = max(self.clock.time, self.begun + t_ns)
            return item
        self.clock.time = max(self.clock.time, until)
        return None

    def send(self, item, deadline_ns):
        if self.broken == "send":
            raise RunError("nobody listens")
        self.sent.append((self.clock.time - self.begun, item))


class Drives:
    """Answers every item by its name; in every step it says `beat` unasked."""

    def __init__(self):
        self.log, self.beats = [], False

    def reset(self, t_ns):
        self.log.append("reset")

    def handle(self, item, t_ns):
        self.log.append(item)
        return [f"re {item}"]

    def process(self, t_ns):
        self.log.append("process")
        return ["beat"] if self.beats else []


def emulation_with(*inboxes, faults=(), is_open=True):
    """(the emulation, its plant, what it reports, its first line)."""
    clock = FakeClock(time=7_000_000_000)
    plant, reported, motors = Plant(len(inboxes)), [], [motor_of() for _ in inboxes]
    joints = tuple(f"j{k}" for k in range(len(inboxes)))
    lines = [
        EmulatedConnection(
            "line" + f"{k or ''}", Wire(clock, *inbox), Drives(), (joints[k],), (motor,), FaultyConnection(k)
        )
        for k, (inbox, motor) in enumerate(zip(inboxes, motors, strict=True))
    ]
    moved = EmulatedMotors(plant, motors, [wired(k, 2.0) for k in range(len(inboxes))], 1e-3)
    injected = tuple(map(InjectedFault, faults))
    made = EmulationServer(moved, tuple(lines), injected, MS, clock, joints, reported.append)
    if is_open:
        made.open()
    return made, plant, reported, lines[0]


def test_steps_follow_the_clock_and_requests_are_answered_on_arrival():
    emulation, plant, _, line = emulation_with([(0, "a"), (400_000, "b"), (1_700_000, "c")])
    emulation.serve(0.003)
    assert line.link.sent == [(0, "re a"), (400_000, "re b"), (1_700_000, "re c")]
    assert line.drives.log[:8] == ["reset", "a", "process", "b", "process", "c", "process", "process"]
    assert emulation.steps == 4 and emulation.clock_slip_ns == 0
    assert plant.log == [0, "step", 1 * MS, "step", 2 * MS, "step", 3 * MS, "step", 4 * MS]
    assert (line.answered, line.unsent) == (3, 0)


def test_missed_steps_are_caught_up_and_a_large_delay_becomes_clock_slip():
    faults = [spec(at=0.100, duration=0.002)]
    emulation, plant, reported, _ = emulation_with([], faults=faults)
    emulation.serve(0.001)
    emulation.clock.time += BEHIND_NS - 2 * MS  # the machine had other things to do
    before = emulation.clock.time
    while emulation.clock.time == before:
        emulation.step()
    assert emulation.clock_slip_ns == 0
    assert plant.t_ns == pytest.approx(emulation.clock.time - 7_000_000_000, abs=2 * MS)
    steps = emulation.steps
    emulation.clock.time += 10 * BEHIND_NS
    emulation.step()
    assert emulation.steps == steps + 1
    assert emulation.clock_slip_ns == pytest.approx(10 * BEHIND_NS, abs=2 * MS)
    now = emulation.clock.time
    emulation.serve(0.005)
    assert emulation.clock.time - now == pytest.approx(5 * MS, abs=MS)
    assert emulation.steps == pytest.approx(steps + 6, abs=1)
    emulation.serve(0.100)
    assert reported == ["0.100 s  drop at line begins", "0.102 s  drop at line ends"]  # in simulated time


def test_several_connections_are_served_together():
    emulation, *_, line = emulation_with([(100_000, "a"), (900_000, "b")], [(150_000, "x"), (950_000, "y")])
    emulation.serve(0.002)
    first, second = emulation.connections
    for line, times in ((first, (100_000, 900_000)), (second, (150_000, 950_000))):
        assert [t for t, _ in line.link.sent] == pytest.approx(times, abs=200_000)
    assert [item for _, item in second.link.sent] == ["re x", "re y"]
    assert emulation.steps == 3


def test_a_flooded_connection_does_not_delay_the_physics():
    flood = [(0, k) for k in range(10 * MAX_ITEMS)]
    emulation, *_ = emulation_with(flood)
    emulation.step()
    assert emulation.steps == 1
    assert emulation.connections[0].answered == MAX_ITEMS


def test_unsent_replies_are_counted_and_a_broken_connection_is_opened_again():
    emulation, *_, line = emulation_with([(0, "a"), (200_000, "b")])
    line.link.broken = "send"
    emulation.step()
    assert (line.answered, line.unsent, line.link.sent) == (1, 1, [])
    line.link.broken = "receive"
    emulation.step()
    assert line.link.log == ["open", "reopen"] and line.answered == 2
    emulation.close()
    assert line.link.log[-1] == "close"


def test_if_a_connection_cannot_be_opened_none_is():
    emulation, *_ = emulation_with([], [], is_open=False)
    emulation.connections[1].link.broken = "open"
    with pytest.raises(InputError, match="no such line"):
        emulation.open()
        assert [line.link.log[-1] for line in emulation.connections] == ["close", "close"]


def test_it_ends_on_request():
    emulation, *_ = emulation_with([])
    process = emulation.connections[0].drives.process

    def last(t_ns):
        emulation.stopped = emulation.steps == 5
        return process(t_ns)

    emulation.connections[0].drives.process = last
    emulation.serve()
    assert emulation.steps == 5


# --- what goes wrong in the loop --------------------------------------------------------------------


def steps(emulation, n):
    for _ in range(n):
        emulation.step()


def test_a_stale_heartbeat_stops_unsolicited_items_only():
    emulation, _, reported, line = emulation_with(
        [(1_500_000, "a")], faults=[spec("stale_heartbeat", at=0.001, duration=0.002)]
    )
    line.drives.beats = True
    steps(emulation, 5)
    assert [item for _, item in line.link.sent] == ["beat", "re a", "beat", "beat"]
    assert reported == ["0.001 s  stale heartbeat at line begins", "0.003 s  stale heartbeat at line ends"]


def test_a_loss_of_power_silences_the_drives_and_resets_them_when_it_is_over():
    emulation, plant, reported, line = emulation_with([(0, "a"), (1_500_000, "b"), (4_500_000, "c")],
                                           faults=[spec("power_loss", at=0.001, duration=0.002)])  # fmt: skip
    line.motors[0].request(1.0)
    steps(emulation, 1)
    assert plant.requested.tolist() == [2.0]
    steps(emulation, 1)
    assert plant.requested.tolist() == [0.0] and line.motors[0].requested == 0.0
    steps(emulation, 5)
    assert [item for _, item in line.link.sent] == ["re a", "re c"]
    assert line.drives.log == ["reset", "a", "process", "reset", "process", "process", "c", "process", "process"]
    assert reported == ["0.001 s  power loss at line begins", "0.003 s  power loss at line ends"]


def test_after_bus_off_the_watchdogs_of_the_drives_act():
    emulation, *_, line = emulation_with([(1_500_000, "b")], faults=[spec("bus_off", at=0.001)])
    steps(emulation, 5)
    assert line.drives.log == ["reset", *["process"] * 5] and line.link.sent == []


def test_late_requests_are_answered_on_arrival():
    emulation, *_ = emulation_with([(100_000, "a")], faults=[spec("delay", delay=0.003)])
    steps(emulation, 1)  # from the first step on
    emulation.connections[0].link.inbox.append((200_000, "b"))
    steps(emulation, 9)
    assert [item for _, item in emulation.connections[0].link.sent] == ["re a", "re b"]
    assert [t for t, _ in emulation.connections[0].link.sent] == pytest.approx([6 * MS, 6 * MS], abs=2 * MS)


def test_a_fault_affects_its_own_connection_only():
    emulation, *_ = emulation_with([(1_500_000, "a")], [(1_600_000, "x")], faults=[spec("drop", driver="line1")])
    steps(emulation, 4)
    assert [[item for _, item in line.link.sent] for line in emulation.connections] == [["re a"], []]


def test_faults_of_a_motor_begin_and_end():
    at = {"driver": "", "joint": "j1"}
    faults = [
        spec("encoder_jump", at=0.001, duration=0.004, size=0.1, **at),
        spec("motor_fault", at=0.002, duration=0.001, **at),
    ]
    emulation, _, reported, _ = emulation_with([], [], faults=faults)
    seen = []
    for _ in range(7):
        emulation.step()
        seen.append([(motor.jump, motor.fault_cause) for motor in emulation.motors.motors])
    assert [one[0] for one in seen] == [(0.0, "")] * 7
    off, jumped, both = (0.0, ""), (0.2, ""), (0.2, "encoder")  # the drive turns twice as far as its joint
    assert [one[1] for one in seen] == [off, jumped, both, jumped, jumped, off, off]
    assert reported == [
        "0.001 s  encoder jump at j1 begins",
        "0.002 s  motor fault at j1 begins",
        "0.003 s  motor fault at j1 ends",
        "0.005 s  encoder jump at j1 ends",
    ]


def test_faults_of_one_kind_at_one_motor_add_up():
    at = {"driver": "", "joint": "j0"}
    faults = [
        spec("encoder_jump", at=0.001, size=0.1, **at),
        spec("encoder_jump", at=0.002, duration=0.001, size=0.3, **at),
        spec("motor_fault", at=0.001, cause="overcurrent", **at),
        spec("motor_fault", at=0.002, duration=0.001, cause="encoder", **at),
    ]
    emulation, *_ = emulation_with([], faults=faults)
    (motor,), seen = emulation.motors.motors, []
    for _ in range(4):
        emulation.step()
        seen.append((pytest.approx(motor.jump), motor.fault_cause))
    assert seen == [(0.0, ""), (0.2, "overcurrent"), (0.8, "overcurrent"), (0.2, "overcurrent")]


def test_a_condition_waits_for_the_run():
    """It holds from the start, but no drive has requested an effort yet."""
    faults = [
        spec("bus_off", signal="j0/position", bound=-1.0),
        spec("delay", signal="j0/temperature", bound=20.0),
        spec("drop", signal="j0/effort", factor=-1.0, bound=0.5),
    ]
    emulation, _, reported, _ = emulation_with([], faults=faults)
    steps(emulation, 3)
    assert reported == []
    emulation.motors.motors[0].request(1e-3)
    steps(emulation, 1)
    emulation.motors.motors[0].request(0.0)
    steps(emulation, 1)
    assert reported == [f"0.003 s  {kind} at line begins" for kind in ("bus off", "delay", "drop")]


def test_a_fault_waits_for_its_condition():
    emulation, plant, reported, _ = emulation_with([], faults=[spec(at=0.001, signal="j0/position", bound=0.5)])
    emulation.motors.motors[0].request(1e-3)
    steps(emulation, 3)
    plant.sample[0][0] = 0.6
    steps(emulation, 3)
    assert reported == ["0.004 s  drop at line begins"]


# --- of a rig ---------------------------------------------------------------------------------------


RIG = """\
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {name: a, axis: [0, 1, 0], parent: base, mass: 1, inertia: [1, 1, 1]}
    - {name: b, axis: [0, 1, 0], parent: base, mass: 1, inertia: [1, 1, 1]}
    - {name: c, axis: [0, 1, 0], parent: base, mass: 1, inertia: [1, 1, 1]}
joints:
  all: {limits: {velocity: 9, effort: 6}}
  b: {initial: {velocity: 1}}
  c: {initial: {velocity: 1}}
controllers: [{type: pid, kp: 1, ki: 0, kd: 0, joints: [a, b]}]
drivers:
  - type: odrive
    bus: {interface: virtual, channel: emulation}
    joints: {a: {id: 1, ratio: 3, direction: -1, zero: 0.2}}
"""


def emulation_from(tmp_path, text, *overrides):
    (tmp_path / "rig.yaml").write_text(text)
    return emulation_of(read_rig(tmp_path / "rig.yaml", overrides), interpret=True, clock=FakeClock())


def test_a_rig_without_drives_has_nothing_to_emulate(tmp_path):
    with pytest.raises(InputError) as caught:
        emulation_from(tmp_path, RIG, "drivers=[]")
    assert caught.value.what == "no drives to emulate; give the rig a section 'drivers'"


def test_load_motors_are_those_of_a_bench(tmp_path):
    load = "  - {name: load, type: odrive, bus: {interface: virtual, channel: l}, loads: {a: {id: 1, effort: 1}}}\n"
    with pytest.raises(InputError) as caught:
        emulation_from(tmp_path, RIG + load)
    what = "driver 'load' has load motors, which the mechanism of this rig does not have; emulate a rig of the bench"
    assert str(caught.value) == f"{tmp_path / 'rig.yaml'}:16 drivers[1].loads: {what}"


def test_joints_with_simulated_motors_are_latched_and_those_without_a_motor_move(tmp_path):
    emulation = emulation_from(tmp_path, RIG)
    virtual_plant = emulation.motors.plant
    virtual_plant.begin(0)
    (motor,) = emulation.motors.motors
    for k in range(50):
        motor.request(0.5)
        emulation.motors.write_requests()
        virtual_plant.advance()
        virtual_plant.begin((k + 1) * MS)
        emulation.motors.measure()
    position, velocity, _ = virtual_plant.sample
    assert (position[1], velocity[1]) == (0.0, 0.0)
    assert position[2] == pytest.approx(0.05) and velocity[2] == pytest.approx(1.0)
    assert position[0] == pytest.approx(0.5 * -3.0 * 0.5 * 0.05**2, rel=1e-6)  # of an inertia of 1
    assert motor.position == pytest.approx(-3.0 * (position[0] - 0.2))


RIGS = Path(__file__).parents[2] / "rigs"
WITH_DRIVES = [path for path in sorted(RIGS.rglob("*.yaml")) if "\ndrivers:\n" in path.read_text()]


@pytest.mark.parametrize("path", WITH_DRIVES, ids=lambda path: path.stem)
def test_the_sample_rigs_fit_their_buses_and_can_be_emulated(path):
    """Not the one with load motors: its bench is emulated."""
    rig = WiredRig(read_rig(path), interpret=True)
    assert rig.bus_loads and max(rig.bus_loads.values()) <= 1.0
    if not any(driver.loads for driver in rig.spec.drivers):
        assert emulation_of(rig.spec, interpret=True).connections


DC_MOTOR = (
    "joints.a.actuator={type: dc_motor, resistance: 1, inductance: 1 mH, torque_constant: 0.3, rotor_inertia: 0.001,"
    " bandwidth: 200 Hz, viscous: 0.5%s}"
)


def moved(emulation, ms):
    """Steps of an emulation for this time."""
    plant, steps = emulation.motors.plant, round(ms * MS / emulation.step_ns)
    for k in range(steps):
        emulation.motors.write_requests()
        plant.advance()
        plant.begin((k + 1) * emulation.step_ns)
        emulation.motors.measure()


@pytest.mark.parametrize("integrator", ["rk4", "semi_implicit_euler", "rosenbrock"])
def test_the_current_loops_of_drives_are_stable_at_a_coarse_step(tmp_path, integrator):
    emulation = emulation_from(
        tmp_path, RIG, DC_MOTOR % "", f"schedule={{step: 8 ms, duration: 1, integrator: {integrator}}}"
    )
    assert emulation.step_ns == MS
    emulation.motors.measure()
    (motor,) = emulation.motors.motors
    motor.request(0.5)
    moved(emulation, 24)
    assert motor.effort == pytest.approx(0.5, rel=0.2)  # less friction


def test_a_current_loop_that_is_too_fast_to_be_emulated_is_refused(tmp_path):
    with pytest.raises(InputErrors) as caught:
        emulation_from(tmp_path, RIG, DC_MOTOR % "", "joints.a.actuator.bandwidth=50 kHz", "schedule={step: 1 ms}")
    assert str(caught.value).endswith(
        ": its fastest time constant of 3.17 µs is too short to be emulated in real time; lower its bandwidth, or use"
        " schedule.integrator: rosenbrock"
    )


@pytest.mark.parametrize("drive", ["current", "voltage"])
def test_motors_that_are_off_give_no_effort(tmp_path, drive):
    emulation = emulation_from(
        tmp_path, RIG, DC_MOTOR % f", drive: {drive}", "joints.a.initial={velocity: 1}", "joints.a.actuator.viscous=0"
    )
    emulation.motors.measure()
    (motor,) = emulation.motors.motors
    moved(emulation, 20)
    assert (motor.effort, motor.current, emulation.motors.value(0, "effort")) == (0.0, 0.0, 0.0)
    assert emulation.motors.plant.sample[1][0] == pytest.approx(1.0, rel=1e-3)  # nothing brakes it
    friction = emulation_from(tmp_path, RIG, DC_MOTOR % "", "joints.a.initial={velocity: 1}")
    moved(friction, 5)
    assert friction.motors.value(0, "effort") == friction.motors.motors[0].effort == 0.0


def test_a_motor_has_the_limits_of_the_rig_unless_it_is_given_its_own(tmp_path):
    motor = emulation_from(tmp_path, RIG).motors.motors[0]
    assert (motor.max_effort, motor.max_velocity) == (1.5 * 6.0 / 3.0, 2.0 * 9.0 * 3.0)
    assert (motor.torque_constant, motor.voltage, motor.temperature, motor.max_temperature) == (0.1, 24.0, 25.0, 80.0)
    more = ("joints.a.actuator={type: dc_motor, resistance: 1, inductance: 1 mH, torque_constant: 0.3, rotor_inertia:"
            " 0.001}", "emulator={voltage: 48, ambient: 30, joints: {a: {max_effort: 12, max_velocity: 3,"
            " max_temperature: 70}}}")  # fmt: skip
    motor = emulation_from(tmp_path, RIG, *more).motors.motors[0]
    assert (motor.max_effort, motor.max_velocity) == (4.0, 9.0)
    assert motor.torque_constant == pytest.approx(0.1)  # 0.3 N·m/A at the joint, behind a ratio of 3
    assert (motor.voltage, motor.temperature, motor.max_temperature) == (48.0, 30.0, 70.0)
    assert (motor.resistance, motor.inductance) == (1.0, 1e-3)
    assert motor.lag == pytest.approx(1.0 / (2.0 * math.pi * 200.0))
    geared = emulation_from(tmp_path, RIG, *more, "joints.a.actuator.ratio=12").motors.motors[0]
    assert geared.torque_constant == pytest.approx(1.2) and geared.resistance == 1.0
    own = "drivers.odrive.joints.a.torque_constant=0.7"
    assert emulation_from(tmp_path, RIG, *more, own).motors.motors[0].torque_constant == 0.7


def test_it_reports_to_be_ready_when_only_serving_remains(tmp_path, monkeypatch):
    """Whoever waits for the last line is answered at once: privileges take half a second to acquire."""
    log = []

    @contextmanager
    def acquired(pacing):
        log.append("privileges")
        yield ()

    monkeypatch.setattr(emulate, "acquire", acquired)
    monkeypatch.setattr(EmulationServer, "open", lambda server: log.append("open"))
    monkeypatch.setattr(EmulationServer, "serve", lambda server, duration: log.append("serve"))
    text = RIG.replace("interface: virtual, channel: emulation", "interface: udp_multicast, channel: 239.74.14.7")
    (tmp_path / "rig.yaml").write_text(text)
    emulate.emulate_rig(tmp_path / "rig.yaml", ("schedule={step: 1 ms}",), 0.001, log.append)
    ready = log.index("emulating; stop with Ctrl-C")
    assert log[:2] == ["privileges", "open"] and log[ready + 1] == "serve"


def test_faults_are_listed_with_their_parameters(tmp_path):
    faults = [
        "{kind: drop, fraction: 0.1, at: 2}",
        "{kind: delay, delay: 5 ms, duration: 1}",
        "{kind: bus_off}",
        "{kind: encoder_jump, joint: a, size: 0.5}",
        "{kind: motor_fault, joint: a, cause: encoder}",
    ]
    (tmp_path / "rig.yaml").write_text(RIG)
    spec = read_rig(tmp_path / "rig.yaml", [f"emulator.faults=[{', '.join(faults)}]"])
    assert list(emulate.connection_lines(spec))[-6:-1] == [
        "  drop (0.1 of the frames) at odrive: at 2 s",
        "  delay (5 ms) at odrive: at 0 s for 1 s",
        "  bus off at odrive: at 0 s",
        "  encoder jump (by 0.5) at a: at 0 s",
        "  motor fault (encoder) at a: at 0 s",
    ]


# --- requests that the emulation does not know --------------------------------------------------------


def test_unknown_requests_are_reported_once_and_counted_at_the_end(tmp_path):
    """As `cosim emulate` shows them; on a bus in memory."""
    path = tmp_path / "rig.yaml"
    path.write_text(
        """
drivers: [{type: cia402, bus: {interface: virtual, channel: unknown requests}, joints: {a: {id: 5}}}]
mechanism: {bodies: [{name: a, mass: 1, inertia: [1, 1, 1]}]}
joints: {a: {limits: {velocity: 1, effort: 1}}}
"""
    )
    said: list[str] = []
    emulation = emulation_of(read_rig(path), clock=FakeClock(), report=said.append)
    emulation.open()
    try:
        (connection,) = emulation.connections
        emulation.advance_once()
        for _ in range(2):
            connection.take(CanFrame(0x605, bytes.fromhex("a017100000000000")), 0)
            emulation.advance_once()
    finally:
        emulation.close()
    assert said == ["cia402: a request that the emulation does not know: node 5: SDO command 0xa0, aborted"]
    assert list(emulate._end_lines(emulation))[-1].endswith(" 0 errors, 2 unknown requests")
