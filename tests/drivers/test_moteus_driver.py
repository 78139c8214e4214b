"""The moteus driver against emulated drives with rotors, on a clock that does what it is told."""

import math
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from cosim.drivers import moteus
from cosim.drivers.common.motor import Rotor
from cosim.drivers.moteus import faults
from cosim.drivers.moteus.codec import BRAKE, QUERY, STOP, ServoFeedback, encode_feedback
from cosim.drivers.moteus.driver import MoteusDriver
from cosim.drivers.moteus.emulator import Emulator
from cosim.drivers.transport import CanFrame, CanParams, ConnectionLost, SerialParams, TrafficMeter
from cosim.errors import InputError, RunError, SourceLocation
from cosim.types import DriverContext, JointCommand, JointState, Limits
from cosim.units import TURN

MS = 1_000_000
KP, KD = 4.0 / TURN, 0.05 / TURN  # as drives come, N·m/rad and N·m·s/rad


class Cable:
    """A line whose other end is the emulator; waiting on it is what makes time pass."""

    name = "the cable"

    def __init__(self, emulator: Emulator, rotors: list[Rotor]) -> None:
        self.emulator, self.rotors = emulator, rotors
        self.t_ns = 1000 * MS
        self.meter = TrafficMeter()
        self.answers: deque[CanFrame] = deque()
        self.sent: list[CanFrame] = []
        self.deaf: set[int] = set()  # nodes that hear nothing
        self.opened = self.cut = False
        self.spoil: Callable[[CanFrame], CanFrame] = lambda frame: frame
        for servo in emulator.servos:
            servo.reset(self.t_ns)

    def open(self) -> None:
        self.opened = True

    def close(self) -> None:
        self.opened = False

    def reopen(self) -> bool:
        return True

    def now(self) -> int:
        return self.t_ns

    def send(self, item: CanFrame, deadline_ns: int) -> None:
        if self.cut:
            raise ConnectionLost("unplugged", self.name)
        self.sent.append(item)
        if item.id & 0x7F not in self.deaf:
            self.answers.extend(self.spoil(frame) for frame in self.emulator.handle(item, self.t_ns))

    def receive(self, deadline_ns: int) -> CanFrame | None:
        if self.cut:
            raise ConnectionLost("unplugged", self.name)
        while not self.answers and self.t_ns < deadline_ns:
            self.run(min(MS, deadline_ns - self.t_ns))
        return self.answers.popleft()._replace(t_ns=self.t_ns) if self.answers else None

    def run(self, duration_ns: int) -> None:
        while duration_ns > 0:
            step = min(duration_ns, MS)
            for rotor in self.rotors:
                rotor.advance(step * 1e-9)
            self.t_ns, duration_ns = self.t_ns + step, duration_ns - step
            self.emulator.process(self.t_ns)


def _place(*keys: str) -> SourceLocation:
    return SourceLocation("rig.yaml", 7, ".".join(keys))


class Bench:
    """Drives 3, 8, … with rotors, their driver, and a state and a command for it."""

    def __init__(self, n: int = 2, watchdog: float = 0.1, brake: bool = False, **joint: Any) -> None:
        self.n = n
        self.rotors = [Rotor() for _ in range(n)]
        wiring = tuple(moteus.JointParams(id=3 + 5 * k, **joint) for k in range(n))
        limits = Limits(*(np.full(n, v) for v in (-np.inf, np.inf, 50.0, 1.5)))
        names = tuple(f"j{k}" for k in range(n))
        self.context = DriverContext(
            names, wiring, limits, 1e-3, "effort", lambda *keys: SourceLocation("rig.yaml", 7, ".".join(keys))
        )
        params = moteus.Params(bus=CanParams("virtual", "x", fd=True), watchdog=watchdog)
        self.cable = Cable(moteus.emulate(params, self.context, self.rotors), self.rotors)
        self.servos = self.cable.emulator.servos
        self.driver = MoteusDriver(self.cable, self.context, [w.id for w in wiring], watchdog, brake=brake)
        self.state, self.command = JointState.zeros(n), JointCommand.zeros(n)

    def cycle(self, times: int = 1, **values: Any) -> None:
        """1 ms, write, read."""
        for name, value in values.items():
            getattr(self.command, name)[:] = value
        for _ in range(times):
            self.cable.run(MS)
            self.command.valid_until_ns = self.cable.t_ns + 10 * MS
            self.driver.write(self.command, self.cable.t_ns + MS)
            self.driver.read(self.state, self.cable.t_ns)


@pytest.fixture
def make() -> Callable[..., Bench]:
    return Bench


@pytest.fixture
def bench(make: Callable[..., Bench]) -> Iterator[Bench]:
    made = make()
    made.driver.open()
    yield made
    made.driver.close()
    assert all(rotor.effort == 0.0 for rotor in made.rotors)


# --- a run from beginning to end ------------------------------------------------------------------


def test_from_opening_to_stopping(bench: Bench) -> None:
    driver, rotors = bench.driver, bench.rotors
    assert [servo.mode for servo in bench.servos] == [0, 0]
    driver.enable("effort")
    assert [servo.mode for servo in bench.servos] == [10, 10] and rotors[0].effort == 0.0
    bench.cycle(20, effort=(0.1, -0.2))
    assert rotors[0].effort == pytest.approx(0.1) and rotors[1].effort == pytest.approx(-0.2)
    assert bench.state.effort == pytest.approx([0.1, -0.2]) and bench.state.velocity[0] > 0 > bench.state.velocity[1]
    assert bench.state.position == pytest.approx([r.position for r in rotors], abs=1e-4)
    assert bench.state.temperature.tolist() == [25, 25] and bench.state.t_ns == bench.cable.t_ns
    bench.cable.run(120 * MS)  # nobody commands
    driver.read(bench.state, bench.cable.t_ns)
    driver.read(bench.state, bench.cable.t_ns)
    assert bench.state.fault.tolist() == [faults.TIMED_OUT] * 2 and rotors[0].effort == 0.0
    assert driver.describe_fault(0, -1).startswith("the drive's watchdog tripped; command it more often")
    bench.cycle(5)  # commands do not start it again
    assert [servo.mode for servo in bench.servos] == [11, 11] and bench.state.fault.tolist() == [-1, -1]
    driver.stop()
    driver.enable("effort")
    rotors[1].fault_cause = "overtemperature"
    bench.cycle(3, effort=0.1)
    assert bench.state.fault.tolist() == [0, 38] and rotors[1].effort == 0.0
    assert driver.describe_fault(1, 38) == "over temperature (drive error 38); let it cool down"
    rotors[1].fault_cause = ""
    bench.cycle(3)
    assert bench.state.fault[1] == 38, "only stopping clears a fault"
    with pytest.raises(RunError, match=r"^joint 'j1': fault: over temperature \(drive error 38\); let it cool down$"):
        driver.enable("effort")
    driver.stop()
    assert [servo.mode for servo in bench.servos] == [0, 0]
    driver.enable("effort")
    bench.cycle(3)
    assert bench.state.fault.tolist() == [0, 0] and driver.lost == 0


def test_gains_that_the_drive_has_are_closed_in_the_drive(bench: Bench) -> None:
    bench.driver.enable("effort")
    bench.cycle(1, position=0.3, velocity=0.5, effort=0.05, kp=(KP, KP / 2), kd=(KD, KD / 4))
    for servo, kp, kd in zip(bench.servos, (1.0, 0.5), (1.0, 0.25), strict=True):
        assert servo.written["position"] * TURN == pytest.approx(0.3)
        assert servo.written["velocity"] * TURN == pytest.approx(0.5)
        assert servo.written["feedforward"] == pytest.approx(0.05)
        assert (servo.written["kp_scale"], servo.written["kd_scale"]) == pytest.approx((kp, kd))
        assert servo.written["timeout"] == pytest.approx(0.1) and servo.written["max_torque"] == pytest.approx(1.5)
        assert servo.written["ilimit_scale"] == 0.0 and math.isnan(servo.command["accel_limit"])


def test_larger_gains_are_closed_by_the_driver(bench: Bench) -> None:
    bench.driver.enable("effort")
    bench.cycle(1, position=0.3, effort=0.05, kp=(3.0, KP), kd=(0.0, 2 * KD))
    first, second = (servo.written for servo in bench.servos)
    assert first["feedforward"] == pytest.approx(3.0 * 0.3 + 0.05) and first["kp_scale"] == 0.0
    assert second["feedforward"] == pytest.approx(KP * 0.3 + 0.05) and second["kd_scale"] == 0.0
    bench.cycle(300, effort=0.0, kp=1.0, kd=0.05)
    assert [r.position for r in bench.rotors] == pytest.approx([0.3, 0.3], abs=2e-3)


def test_each_joint_for_itself(bench: Bench) -> None:
    """One closed in the drive, one here; without kp the drive's set-point is where it is."""
    bench.driver.enable("effort")
    bench.rotors[0].position = bench.rotors[1].position = 0.1
    bench.cycle(1, position=0.3, kp=(KP, 2 * KP))
    first, second = (servo.written for servo in bench.servos)
    assert (first["feedforward"], first["kp_scale"]) == (0.0, 1.0)
    assert (second["feedforward"], second["kp_scale"]) == (pytest.approx(2 * KP * 0.3), 0.0)  # as measured before
    bench.cycle(1, kp=0.0, kd=KD, velocity=0.2)
    assert first is not bench.servos[0].written
    assert [servo.written["position"] * TURN for servo in bench.servos] == pytest.approx([0.1, 0.1], abs=1e-2)
    assert [servo.written["kd_scale"] for servo in bench.servos] == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize(("mode", "reach"), [("position", 0.4), ("velocity", None)])
def test_the_drive_own_loops(bench: Bench, mode: str, reach: float | None) -> None:
    for servo in bench.servos:
        servo.config["servo.pid_position.kd"] = 0.2
    bench.driver.enable(mode)
    bench.cycle(1500, position=0.4, velocity=0.0 if reach else 1.5)
    if reach:
        assert bench.state.position == pytest.approx([0.4, 0.4], abs=1e-3)
    else:
        assert bench.state.velocity == pytest.approx([1.5, 1.5], abs=1e-2)
        assert math.isnan(bench.servos[0].written["position"])
    assert bench.servos[0].written["ilimit_scale"] == pytest.approx(1.0)


def test_direction_ratio_and_zero(make: Callable[..., Bench]) -> None:
    bench = make(2, direction=-1, ratio=2.0, zero=0.25)
    bench.driver.open()
    bench.rotors[0].position = 1.0
    bench.driver.enable("effort")
    bench.cycle(1, effort=0.5)
    bench.cable.run(MS)
    assert bench.state.position[0] == pytest.approx(-0.25, abs=1e-4)
    assert bench.rotors[0].effort == pytest.approx(-0.25)
    assert bench.driver.feedforward.limit == pytest.approx([4.0, 4.0])
    bench.cycle(1, effort=0.0, kp=4 * KP, position=0.25)
    assert bench.servos[0].written["kp_scale"] == pytest.approx(1.0)
    assert bench.servos[0].written["position"] == pytest.approx(0.0, abs=1e-9)


def test_effort_beyond_the_drive_is_cut_and_counted(bench: Bench) -> None:
    bench.driver.enable("effort")
    bench.cycle(3, effort=(2.5, 0.0))
    assert bench.driver.report() == [
        {"joint": "j0", "saturated": 3, "limit": pytest.approx(2.0), "resolution": 0.0},
        {"joint": "j1", "saturated": 0, "limit": pytest.approx(2.0), "resolution": 0.0},
    ]
    assert bench.rotors[0].effort == pytest.approx(1.5), "the drive holds the guard's limit too"


def test_holds_the_measured_state_when_switched_on(bench: Bench) -> None:
    bench.rotors[0].position, bench.rotors[1].position = 2.0, -5.0
    bench.driver.enable("position")
    assert [r.position for r in bench.rotors] == pytest.approx([2.0, -5.0], abs=1e-5)
    assert [r.effort for r in bench.rotors] == pytest.approx([0.0, 0.0], abs=1e-4)


def test_the_first_state_after_switching_on_is_new(bench: Bench) -> None:
    bench.driver.enable("effort")
    bench.cable.run(30 * MS)
    bench.driver.read(bench.state, bench.cable.t_ns + MS)
    assert bench.state.t_ns == bench.cable.t_ns


# --- opening -----------------------------------------------------------------------------------


def test_nobody_answers(make: Callable[..., Bench]) -> None:
    bench = make()
    bench.cable.deaf.add(8)
    began = bench.cable.t_ns
    with pytest.raises(InputError) as caught:
        bench.driver.open()
    assert str(caught.value) == (
        "rig.yaml:7 joints.j1.id: no answer from node 8 on the cable; check its power, the id and the bit rate"
    )
    assert not bench.cable.opened and bench.cable.t_ns - began < 1000 * MS


def test_another_register_map(make: Callable[..., Bench]) -> None:
    bench = make()
    bench.cable.spoil = lambda frame: frame._replace(data=frame.data.replace(b"\x82\x02\x05", b"\x82\x02\x06"))
    with pytest.raises(InputError, match=r"node 3 has register map 6; this driver knows .* 4 and 5$"):
        bench.driver.open()
    bench.cable.spoil = lambda frame: frame._replace(data=b"\x31\x82\x02\x01")
    with pytest.raises(InputError, match=r"node 3 is not a moteus drive; this driver knows moteus' register maps"):
        bench.driver.open()


@pytest.mark.parametrize(
    ("key", "value", "what"),
    [
        (
            "servo.max_current_A",
            10.0,
            "the effort limit is 1.5 N*m at node 3, whose own limit is 1 N*m (servo.max_current_A)",
        ),
        (
            "servo.max_velocity",
            5.0,
            "the velocity limit is 50 rad/s at node 3, whose own limit is 31.4159 rad/s (servo.max_velocity)",
        ),
        (
            "servopos.position_min",
            -0.25,
            "the lower position limit is -3 rad at node 3, whose own limit is -1.5708 rad (servopos.position_min)",
        ),
        (
            "servopos.position_max",
            0.25,
            "the upper position limit is 3 rad at node 3, whose own limit is 1.5708 rad (servopos.position_max)",
        ),
    ],
)
def test_a_limit_beyond_the_drive(make: Callable[..., Bench], key: str, value: float, what: str) -> None:
    bench = make(1)
    bench.context.limits.lower[:], bench.context.limits.upper[:] = -3.0, 3.0
    bench.servos[0].config[key] = value
    with pytest.raises(InputError) as caught:
        bench.driver.open()
    assert str(caught.value) == f"rig.yaml:7 joints.j0.id: {what}; lower the joint's limit or raise the drive's"
    assert not bench.cable.opened


def test_the_effort_of_a_gear_that_the_drive_knows_of(make: Callable[..., Bench]) -> None:
    bench = make(1)
    bench.servos[0].config["motor_position.rotor_to_output_ratio"] = 0.25
    bench.driver.open()
    assert bench.driver.feedforward.limit == pytest.approx([8.0])


def test_a_drive_that_does_not_tell_its_gains(make: Callable[..., Bench]) -> None:
    bench = make(1)
    del bench.servos[0].config["servo.pid_position.kd"]
    with pytest.raises(InputError, match=r"node 3 did not report its 'servo.pid_position.kd'; update the"):
        bench.driver.open()


def test_a_fault_from_before_is_seen_not_cleared(make: Callable[..., Bench]) -> None:
    bench = make()
    bench.servos[1].mode, bench.servos[1].fault = 1, 34
    bench.driver.open()
    bench.driver.read(bench.state, bench.cable.t_ns + MS)
    assert bench.state.fault.tolist() == [0, 34]
    with pytest.raises(
        RunError, match=r"^joint 'j1': fault: over voltage \(drive error 34\); use a supply that can take"
    ):
        bench.driver.enable("effort")
    bench.driver.close()
    assert bench.servos[1].mode == 0


# --- switching on --------------------------------------------------------------------------------


def test_a_mode_that_is_none(bench: Bench) -> None:
    with pytest.raises(
        RunError, match=r"^the drives of j0, j1 have no mode 'torque'; use one of effort, position, velocity$"
    ):
        bench.driver.enable("torque")


def test_commands_need_an_enabled_driver(bench: Bench) -> None:
    with pytest.raises(RunError, match=r"^the motors of j0, j1 are off; enable the driver first$"):
        bench.cycle()


def test_a_drive_that_does_not_switch_on(bench: Bench) -> None:
    bench.servos[1].apply = lambda command, t_ns: None  # type: ignore[method-assign]
    began = bench.cable.t_ns
    with pytest.raises(RunError, match=r"^joint 'j1': node 8 did not switch on within 1 s; check its supply$"):
        bench.driver.enable("effort")
    assert 1000 * MS <= bench.cable.t_ns - began < 1200 * MS and bench.servos[0].mode == 0


def test_a_fault_while_switching_on(bench: Bench) -> None:
    bench.servos[0].config["servopos.position_min"] = 1.0
    with pytest.raises(
        RunError, match=r"^joint 'j0': fault: outside limit \(drive error 39\); move it within servopos.position_min"
    ):
        bench.driver.enable("position")
    assert [servo.mode for servo in bench.servos] == [0, 0]


# --- the cycle -----------------------------------------------------------------------------------


def test_an_answer_that_is_late_keeps_the_old_values(bench: Bench) -> None:
    bench.driver.enable("effort")
    bench.cycle(2, effort=0.1)
    old, seen = bench.state.position.copy(), bench.state.t_ns
    bench.cable.deaf.add(8)
    bench.cycle(3)
    assert bench.state.t_ns == seen and bench.state.position[1] == old[1] and bench.state.position[0] != old[0]
    bench.cable.deaf.clear()


def test_reading_never_waits_past_the_deadline(bench: Bench) -> None:
    bench.cable.deaf.update((3, 8))
    bench.driver.read(bench.state, bench.cable.t_ns + 3 * MS)
    end = bench.cable.t_ns
    bench.driver.read(bench.state, end - MS)
    assert bench.cable.t_ns == end


def test_never_heard_means_no_time(make: Callable[..., Bench]) -> None:
    bench = make()
    bench.cable.deaf.add(8)
    bench.driver.read(bench.state, bench.cable.t_ns + MS)
    assert bench.state.t_ns == 0


def test_frames_that_do_not_decode_are_counted(bench: Bench) -> None:
    bench.driver.enable("effort")
    bench.cable.spoil = lambda frame: frame._replace(data=b"\xff" + frame.data[1:])
    bench.cycle(3)
    assert bench.driver.lost == 6


def test_frames_between_others_are_not_ours(bench: Bench) -> None:
    bench.cable.answers.append(CanFrame(0x0904, b"\x50" * 64, True, True))
    bench.driver.read(bench.state, bench.cable.t_ns + MS)
    assert bench.driver.lost == 0


def test_a_drive_that_lost_its_power_is_not_switched_on_again(bench: Bench) -> None:
    bench.driver.enable("effort")
    bench.cycle(5, effort=0.1)
    bench.servos[1].reset(bench.cable.t_ns)
    bench.cycle(50)
    assert bench.state.fault.tolist() == [0, faults.STOPPED] and bench.servos[1].mode == 0
    assert bench.rotors[1].effort == 0.0 and bench.rotors[0].effort == pytest.approx(0.1)


def test_a_fault_stays_what_it_was(bench: Bench) -> None:
    bench.driver.enable("effort")
    bench.rotors[0].fault_cause = "encoder"
    bench.cycle(3)
    assert bench.state.fault[0] == 35
    bench.servos[0].mode = bench.servos[0].fault = 0  # somebody else stopped it
    bench.cycle(3)
    assert bench.state.fault[0] == 35


def test_asking_anew_forgets_late_answers(bench: Bench) -> None:
    bench.driver.read(bench.state, bench.cable.t_ns)
    bench.cable.answers.extend(
        CanFrame(id, encode_feedback(ServoFeedback(0, 9.0, 0, 0, 24, 25, 0))) for id in (0x300, 0x800)
    )
    bench.driver.read(bench.state, bench.cable.t_ns)
    assert bench.state.position.tolist() == [0.0, 0.0]


def test_another_master_is_noticed(bench: Bench) -> None:
    bench.driver.enable("effort")
    bench.cycle(2)
    bench.servos[0].mode = 15
    bench.servos[0].command["mode"] = 15
    bench.driver.read(bench.state, bench.cable.t_ns + MS)
    assert bench.state.fault[0] == faults.OTHER_MODE
    assert "check for another master" in bench.driver.describe_fault(0, faults.OTHER_MODE)


def test_a_limit_that_the_drive_reports_is_no_fault(bench: Bench) -> None:
    bench.driver.enable("effort")
    bench.cycle(3, effort=1.9)  # the drive holds it at 1.5 N·m
    assert bench.servos[0].fault == 102 and bench.state.fault.tolist() == [0, 0]


def test_old_and_infinite_commands_are_not_sent(bench: Bench) -> None:
    bench.driver.enable("effort")
    bench.cable.sent.clear()
    bench.command.valid_until_ns = bench.cable.t_ns - 1
    with pytest.raises(
        RunError, match=r"^the command of j0, j1 has expired and was not sent; the program is too late$"
    ):
        bench.driver.write(bench.command, bench.cable.t_ns + MS)
    for value in (math.nan, math.inf, 1e39):
        bench.command.valid_until_ns, bench.command.effort[1] = bench.cable.t_ns, value
        with pytest.raises(
            RunError, match=r"^the command of joint 'j1' is not finite and was not sent; check the controller$"
        ):
            bench.driver.write(bench.command, bench.cable.t_ns + MS)
    assert bench.cable.sent == []


def test_a_watchdog_that_is_not_longer_than_the_period(make: Callable[..., Bench]) -> None:
    params = moteus.Params(bus=CanParams("virtual", "x", fd=True), watchdog=0.001)
    with pytest.raises(InputError) as caught:
        moteus.load(params, make(1).context)
    assert str(caught.value) == "rig.yaml:7 watchdog: must be longer than the period of 0.001 s, is 0.001 s"


def test_the_watchdog_of_the_drive_is_that_of_the_parameters(make: Callable[..., Bench]) -> None:
    bench = make(1, watchdog=0.025)
    bench.driver.open()
    bench.driver.enable("effort")
    bench.cycle(2, effort=0.2)
    bench.cable.run(20 * MS)
    assert bench.servos[0].mode == 10
    bench.cable.run(10 * MS)
    assert bench.servos[0].mode == 11 and bench.rotors[0].effort == 0.0


# --- stopping ------------------------------------------------------------------------------------


def test_stopping_never_raises_and_does_not_wait(bench: Bench) -> None:
    bench.driver.enable("effort")
    bench.cycle(2, effort=0.1)
    began = bench.cable.t_ns
    bench.cable.sent.clear()
    bench.driver.stop()
    bench.driver.stop()
    assert [(frame.id, frame.data) for frame in bench.cable.sent] == [(3, STOP), (8, STOP)] * 2
    assert bench.cable.t_ns == began and [r.effort for r in bench.rotors] == [0.0, 0.0]
    bench.cable.cut = True
    bench.driver.stop()
    with pytest.raises(ConnectionLost):
        bench.driver.read(bench.state, bench.cable.t_ns + MS)
    bench.cable.cut = False


@pytest.fixture
def braking(make: Callable[..., Bench]) -> Bench:
    made = make(brake=True)
    made.driver.open()
    return made


def test_a_brake_resists_by_itself_until_the_next_enable_also_when_the_line_is_closed(braking: Bench) -> None:
    driver, rotor = braking.driver, braking.rotors[0]
    assert [servo.mode for servo in braking.servos] == [0, 0], "what is off when it is met is not switched on"
    driver.enable("effort")
    braking.cycle(200, effort=(0.1, 0.0))
    fast = rotor.velocity
    assert fast > 5.0
    braking.cable.sent.clear()
    began = braking.cable.t_ns
    driver.stop()
    driver.stop()
    assert [(frame.id, frame.data) for frame in braking.cable.sent] == [(3, BRAKE), (8, BRAKE)] * 2
    assert braking.cable.t_ns == began
    efforts = []
    for _ in range(200):
        braking.cable.run(MS)
        efforts.append(rotor.effort)
        assert rotor.effort * rotor.velocity <= 0.0
    assert [servo.mode for servo in braking.servos] == [15, 15]
    assert min(efforts) >= -1.01 * 0.1**2 / 0.1 * fast and np.diff(efforts).min() > -1e-9, "strongest at first"
    assert abs(rotor.velocity) < 1e-3 * fast
    braking.cable.run(500 * MS)  # no watchdog: it needs no commands
    driver.read(braking.state, braking.cable.t_ns + MS)
    assert braking.state.fault.tolist() == [0, 0] and [servo.mode for servo in braking.servos] == [15, 15]
    with pytest.raises(RunError, match="are off; enable the driver first"):
        braking.cycle()
    driver.close()
    assert not braking.cable.opened
    rotor.velocity = 1.0
    braking.cable.run(MS)
    assert [servo.mode for servo in braking.servos] == [15, 15] and rotor.effort < 0.0
    braking.cable.sent.clear()
    driver.open()
    driver.enable("effort")
    braking.cycle(3)
    assert STOP not in [frame.data for frame in braking.cable.sent], "it is not let go on the way"
    assert [servo.mode for servo in braking.servos] == [10, 10]


def test_a_drive_that_was_off_brakes_too_when_it_is_stopped(braking: Bench) -> None:
    braking.driver.stop()
    braking.cable.run(20 * MS)
    assert [servo.mode for servo in braking.servos] == [15, 15]


def test_a_brake_clears_neither_a_fault_nor_a_watchdog_that_tripped(braking: Bench) -> None:
    driver, rotors = braking.driver, braking.rotors
    driver.enable("effort")
    rotors[1].fault_cause = "overcurrent"
    braking.cycle(3)
    rotors[1].fault_cause = ""
    driver.stop()
    braking.cable.run(20 * MS)
    assert [servo.mode for servo in braking.servos] == [15, 1] and rotors[1].effort == 0.0
    with pytest.raises(RunError, match=r"^joint 'j1': fault: motor driver fault \(drive error 33\); check the supply"):
        driver.enable("effort")
    assert driver.latched
    sound = [frame.id for frame in braking.cable.sent if frame.data == STOP]
    driver.clear()
    braking.cable.run(20 * MS)
    assert [servo.mode for servo in braking.servos] == [15, 15]
    assert sound == [] and {frame.id for frame in braking.cable.sent if frame.data == STOP} == {0x8008}
    driver.enable("effort")
    braking.cycle(3)
    braking.cable.run(120 * MS)  # nobody commands
    driver.stop()
    driver.read(braking.state, braking.cable.t_ns + MS)
    assert [servo.mode for servo in braking.servos] == [11, 11] and braking.state.fault.tolist() == [-1, -1]
    driver.close()
    driver.open()
    with pytest.raises(RunError, match="the drive's watchdog tripped"):
        driver.enable("effort")
    driver.clear()
    driver.enable("effort")
    braking.cycle(3)
    assert braking.state.fault.tolist() == [0, 0]


def test_firmware_that_need_not_know_how_to_brake(make: Callable[..., Bench]) -> None:
    for brake in (False, True):
        bench = make(1, brake=brake)
        bench.servos[0].mode = 10
        bench.cable.spoil = lambda frame: frame._replace(data=frame.data.replace(b"\x82\x02\x05", b"\x82\x02\x04"))
        if not brake:
            bench.driver.open()
            continue
        with pytest.raises(InputError) as caught:
            bench.driver.open()
        assert str(caught.value) == (
            "rig.yaml:7 stop: node 3 has register map 4, whose firmware may lack mode 15 (brake); update it, or give"
            " 'stop: off'"
        )
        assert not bench.cable.opened and bench.servos[0].mode == 0


def test_no_command_follows_a_stop(bench: Bench) -> None:
    """A stop that comes between the commands to two drives, as of a signal, keeps the rest of them back."""
    bench.driver.enable("effort")
    bench.cycle(2, effort=0.1)
    send = bench.cable.send

    def stopping(item: CanFrame, deadline_ns: int) -> None:
        send(item, deadline_ns)
        bench.cable.send = send  # type: ignore[method-assign]
        bench.driver.stop()

    bench.cable.send = stopping  # type: ignore[method-assign]
    with pytest.raises(RunError, match=r"^the motors of j0, j1 were stopped; enable the driver first$"):
        bench.cycle()
    bench.cable.run(20 * MS)
    assert [servo.mode for servo in bench.servos] == [0, 0]


def test_a_flood_of_frames_holds_up_nobody(bench: Bench) -> None:
    bench.cable.deaf.add(8)
    bench.cable.answers.extend([CanFrame(0x0905, b"", True)] * 1000)
    bench.driver.read(bench.state, bench.cable.t_ns + MS)
    assert len(bench.cable.answers) > 100
    bench.cable.answers.clear()
    bench.cable.deaf.clear()


# --- parameters ----------------------------------------------------------------------------------


def test_exactly_one_line() -> None:
    bus, port = CanParams("virtual", "x", fd=True), SerialParams("/dev/null")
    for both in ({}, {"bus": bus, "port": port}):
        with pytest.raises(ValueError, match=r"^give either 'bus' or 'port'$"):
            moteus.Params(**both)
    with pytest.raises(ValueError, match=r"^moteus drives speak CAN FD; give 'fd: true' in 'bus'$"):
        moteus.Params(bus=CanParams("virtual", "x"))
    with pytest.raises(ValueError, match=r"^'checksum' is for a 'port'; leave it out$"):
        moteus.Params(bus=bus, checksum=True)
    assert (
        moteus.connection_name(moteus.Params(bus=bus)) == "virtual x"
        and moteus.connection_name(moteus.Params(port=port)) == "/dev/null"
    )
    assert moteus.JointParams(id=4).address == 4


@pytest.mark.parametrize("stop", ["off", "brake"])
def test_how_drives_stop_is_a_parameter(make: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch, stop: Any) -> None:
    bench = make(1)
    monkeypatch.setattr(moteus, "host", lambda params, context: bench.cable)
    driver = moteus.load(moteus.Params(bus=CanParams("virtual", "x", fd=True), stop=stop), bench.context)
    driver.open()
    bench.cable.sent.clear()
    driver.close()
    assert [frame.data for frame in bench.cable.sent] == [BRAKE if stop == "brake" else STOP]


def test_traffic_of_a_cycle_is_what_goes_over_the_line(bench: Bench) -> None:
    bench.driver.enable("effort")
    bench.cable.sent.clear()
    heard: list[CanFrame] = []
    bench.cable.spoil = lambda frame: heard.append(frame) or frame
    bench.cycle(1)
    estimate = moteus.traffic(moteus.Params(bus=CanParams("virtual", "x", fd=True)), bench.context)

    def shape(frames: Any) -> list[tuple[Any, ...]]:
        return [(f.id, len(f.data), f.extended, f.fd, f.switched) for f in frames]

    assert shape(estimate.out) == shape(bench.cable.sent) and shape(estimate.back) == shape(heard)
    assert QUERY not in [frame.data for frame in bench.cable.sent]
    lines = moteus.traffic(moteus.Params(port=SerialParams("/dev/null"), checksum=True), bench.context)
    assert [len(line) for line in lines.out] == [len("can send 8003  BF *00\r\n") + 96] * 2
