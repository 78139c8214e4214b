"""The Dynamixel driver on a line of its own time: setting up, cycles, watchdog, faults, damage, mistakes."""

from collections import deque
from collections.abc import Callable
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest

from cosim.drivers import dynamixel
from cosim.drivers.common.motor import Rotor
from cosim.drivers.dynamixel import codec, cyclic_frames, faults
from cosim.drivers.dynamixel import tables as t
from cosim.drivers.dynamixel.driver import DynamixelDriver
from cosim.drivers.transport import ConnectionLost, estimate
from cosim.errors import InputError, RunError, SourceLocation
from cosim.types import DriverContext, JointCommand, JointState, Limits

MS = 1_000_000


class Bench:
    """A driver, its drives with rotors, and the line between them; time passes while somebody waits."""

    name = "the line"
    meter: Any = None

    def __init__(self, monkeypatch: pytest.MonkeyPatch, joints: int = 3, mode: str = "effort", **options: Any) -> None:
        wiring = options.pop("wiring", {})
        self.limits = options.pop("limits", (-2.0, 2.0, 2.0, 4.0))
        period = options.pop("period", 1e-3)
        names = tuple(f"j{k}" for k in range(joints))
        lower, upper, velocity, effort = (np.full(joints, bound) for bound in self.limits)
        self.context = DriverContext(
            names,
            tuple(dynamixel.JointParams(id=k + 1, **wiring) for k in range(joints)),
            Limits(lower, upper, velocity, effort),
            period,
            mode,
            lambda *keys: SourceLocation("rig.yaml", 5, ".".join(keys)),
        )
        self.params = dynamixel.Params(port=dynamixel.SerialSettings(port="/dev/ttyX", baudrate=4e6), **options)
        self.rotors = [Rotor(inertia=1e-2, friction=1e-2) for _ in names]
        for rotor in self.rotors:
            rotor.max_velocity = 5.0
        self.emulator = dynamixel.emulate(self.params, self.context, self.rotors)
        self.nodes = self.emulator.nodes
        self.t_ns, self.inbox, self.is_open = 1000 * MS, deque(), False
        self.heard: list[bytes] = []
        self.spoil: Callable[[list[bytes]], list[bytes]] = lambda answers: answers
        self.delay_ns = 20_000
        self.emulator.reset(self.t_ns)
        self.driver = DynamixelDriver(self.params, self.context, self)
        self.out, self.cmd = JointState.zeros(joints), JointCommand.zeros(joints)

    # the serial link
    def now(self) -> int:
        return self.t_ns

    def open(self) -> None:
        self.is_open = True

    def close(self) -> None:
        self.is_open = False

    def reopen(self) -> bool:
        return self.is_open

    def send(self, item: bytes, deadline_ns: int) -> None:
        if not self.is_open:
            raise ConnectionLost("the connection is not open", self.name)
        self.heard.append(item)
        for answer in self.spoil(self.emulator.handle(item, self.t_ns)):
            self.inbox.append((self.t_ns + self.delay_ns, answer))

    def receive(self, deadline_ns: int) -> bytes | None:
        while True:
            if self.inbox and self.inbox[0][0] <= max(deadline_ns, self.t_ns):
                due, answer = self.inbox.popleft()
                self.wait(due)
                return answer
            if self.t_ns >= deadline_ns:
                return None
            self.wait(deadline_ns)

    def wait(self, until_ns: int) -> None:
        while self.t_ns < until_ns:
            step = min(until_ns - self.t_ns, MS)
            self.t_ns += step
            for rotor in self.rotors:
                rotor.advance(step * 1e-9)
            self.emulator.process(self.t_ns)

    # what a test does with it
    def start(self) -> "Bench":
        self.driver.open()
        self.driver.enable(self.context.mode)
        return self

    def read(self) -> JointState:
        self.driver.read(self.out, self.t_ns + MS)
        return self.out

    def write(self, **goals: float) -> None:
        for key, value in goals.items():
            getattr(self.cmd, key)[:] = value
        self.cmd.valid_until_ns = self.t_ns + 10 * MS
        self.driver.write(self.cmd, self.t_ns + MS)

    def run(self, ms: int, **goals: float) -> JointState:
        for _ in range(ms):
            begin = self.t_ns
            self.read()
            self.write(**goals)
            self.wait(begin + MS)
        return self.read()

    def torques(self) -> list[bool]:
        return [node.torque for node in self.nodes]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Bench]:
    return lambda *args, **options: Bench(monkeypatch, *args, **options)


def test_open_leaves_motors_off_and_says_where_they_are(bench: Callable[..., Bench]) -> None:
    b = bench()
    for k, rotor in enumerate(b.rotors):
        rotor.position = 0.5 * k
    b.emulator.reset(b.t_ns)
    for node in b.nodes:
        node.put(t.TORQUE_ENABLE, 1)
    b.driver.open()
    assert b.torques() == [False] * 3
    state = b.read()
    assert state.position == pytest.approx([0.0, 0.5, 1.0], abs=8e-4)
    assert state.fault.tolist() == [0, 0, 0]
    assert state.temperature.tolist() == [25, 25, 25]
    assert 0 < state.t_ns <= b.t_ns


def test_effort(bench: Callable[..., Bench]) -> None:
    b = bench().start()
    b.write(effort=0.5)
    b.wait(b.t_ns + MS)
    quantum = 2.69e-3 * 1.783
    assert [rotor.effort for rotor in b.rotors] == pytest.approx([0.5] * 3, abs=quantum / 2)
    b.wait(b.t_ns + MS)
    assert b.read().effort == pytest.approx([0.5] * 3, abs=quantum / 2)
    state = b.run(1000, effort=0.0, position=1.0, kp=2.0, kd=0.3)
    assert state.position == pytest.approx([1.0] * 3, abs=4e-3)
    assert b.driver.report()[0] == pytest.approx(
        {"joint": "j0", "saturated": 0, "limit": 1193 * quantum, "resolution": quantum}
    )


def test_efforts_beyond_the_current_limit_are_cut_and_counted(bench: Callable[..., Bench]) -> None:
    b = bench().start()
    b.write(effort=-100.0)
    assert [node.get(t.GOAL_CURRENT) for node in b.nodes] == [-1193] * 3
    assert [row["saturated"] for row in b.driver.report()] == [1, 1, 1]


def test_velocity(bench: Callable[..., Bench]) -> None:
    b = bench(mode="velocity").start()
    assert b.run(1000, velocity=-1.5).velocity == pytest.approx([-1.5] * 3, abs=0.03)
    b.write(velocity=100.0)
    assert [node.get(t.GOAL_VELOCITY) for node in b.nodes] == [200] * 3


def test_position(bench: Callable[..., Bench]) -> None:
    b = bench(mode="position", limits=(-2.0, 2.0, 2.0, 1.0)).start()
    assert [node.mode for node in b.nodes] == [t.CURRENT_POSITION_MODE] * 3
    bound = int(1.0 / (2.69e-3 * 1.783))
    assert [node.get(t.GOAL_CURRENT) for node in b.nodes] == [bound] * 3
    assert b.run(1500, position=0.8).position == pytest.approx([0.8] * 3, abs=4e-3)
    b.write(effort=0.1)
    assert b.driver.report()[0] == {"joint": "j0", "saturated": 1, "limit": 0.0, "resolution": 0.0}


def test_wiring(bench: Callable[..., Bench]) -> None:
    b = bench(wiring={"direction": -1, "ratio": 2.0, "zero": 0.25}, limits=(-0.5, 1.0, 1.0, 4.0)).start()
    b.write(effort=0.5)
    b.wait(b.t_ns + 50 * MS)
    assert [rotor.effort for rotor in b.rotors] == pytest.approx([-0.25] * 3, abs=3e-3)
    state, rotor = b.read(), b.rotors[0]
    assert state.position[0] == pytest.approx(0.25 - rotor.position / 2, abs=1e-3)
    assert state.velocity[0] == pytest.approx(-rotor.velocity / 2, abs=0.03)
    assert state.effort[0] == pytest.approx(0.5, abs=0.01)


def test_the_turn_is_the_one_within_the_limits(bench: Callable[..., Bench]) -> None:
    for mode in ("effort", "position"):
        b = bench(mode=mode)
        for rotor in b.rotors:
            rotor.position = -0.5
        b.emulator.reset(b.t_ns)  # an encoder shows 2π − 0.5 after power-on
        b.start()
        assert b.nodes[0].get(t.PRESENT_POSITION) == pytest.approx(4096 - 326)
        assert b.read().position == pytest.approx([-0.5] * 3, abs=1e-3)
        assert b.run(100, position=-0.5, kp=1.0).position == pytest.approx([-0.5] * 3, abs=2e-3)


def test_enabling_holds_what_is_measured(bench: Callable[..., Bench]) -> None:
    for mode in ("effort", "velocity", "position"):
        b = bench(mode=mode)
        for rotor in b.rotors:
            rotor.position = 1.0
        b.start()
        b.wait(b.t_ns + 30 * MS)
        assert [rotor.position for rotor in b.rotors] == pytest.approx([1.0] * 3, abs=2e-3), mode
        order = [item[8] for item in b.heard if item[7] == codec.WRITE and item[4] == 1]
        assert order.index(t.BUS_WATCHDOG.address) < order.index(cyclic_frames.GOALS[mode].address)
        assert b.nodes[0].get(t.BUS_WATCHDOG) == 4  # of 5: one is for reads that come late


def test_what_is_in_the_eeprom_is_not_written_again(bench: Callable[..., Bench]) -> None:
    b = bench(mode="velocity").start()
    b.driver.stop()
    b.heard.clear()
    b.driver.enable("velocity")
    assert all(item[8] >= t.EEPROM_END for item in b.heard if item[7] == codec.WRITE)


def test_one_question_and_one_packet_of_goals_in_a_cycle(bench: Callable[..., Bench]) -> None:
    for fast, instruction in ((None, codec.FAST_SYNC_READ), (True, codec.FAST_SYNC_READ), (False, codec.SYNC_READ)):
        b = bench(fast=fast).start()
        b.heard.clear()
        b.run(1)
        assert [item[7] for item in b.heard] == [instruction, codec.SYNC_WRITE, instruction]
        traffic = dynamixel.traffic(b.params, b.context)
        assert [len(item) for item in traffic.out] == [len(b.heard[1]), len(b.heard[0])]
        assert traffic.back == [bytes(len(a)) for a in traffic.back] or len(traffic.back) == (
            1 if instruction == 0x8A else 3
        )
        assert 0.1 < estimate(traffic, b.params.port, 1e-3) < 1
        assert b.out.t_ns > 0


def test_older_firmware_gets_the_slower_question(bench: Callable[..., Bench]) -> None:
    b = bench()
    b.nodes[1].put(t.FIRMWARE, 44)
    b.start()
    b.heard.clear()
    b.read()
    assert b.heard[0][7] == codec.SYNC_READ


def test_without_commands_drives_stop_although_they_are_read(bench: Callable[..., Bench]) -> None:
    b = bench(mode="velocity").start()
    b.run(300, velocity=1.0)
    begin, told = b.t_ns, 0
    while b.t_ns < begin + 200 * MS:
        fault = b.read().fault[0]
        tripped = b.nodes[0].get(t.BUS_WATCHDOG) == t.TRIPPED
        assert tripped or b.t_ns - begin <= 101 * MS
        told = told or (b.t_ns if fault else 0)
        b.wait(b.t_ns + MS)
    assert b.out.fault.tolist() == [faults.WATCHDOG] * 3
    assert told - begin < 130 * MS
    assert b.out.velocity == pytest.approx([0.0] * 3, abs=0.2)  # the drive's loop is still swinging
    b.driver.enable("velocity")
    assert b.run(200, velocity=1.0).fault.tolist() == [0, 0, 0]


def test_a_slow_period_with_a_longer_watchdog(bench: Callable[..., Bench]) -> None:
    b = bench(period=0.05, watchdog=0.2).start()
    for _ in range(30):
        b.driver.read(b.out, b.t_ns + 10 * MS)
        b.write()
        b.wait(b.t_ns + 50 * MS)
    assert b.out.fault.tolist() == [0, 0, 0]


def test_faults_are_told_and_only_a_reboot_clears_them(bench: Callable[..., Bench]) -> None:
    b = bench().start()
    b.rotors[1].fault_cause = "overcurrent"
    assert b.run(2).fault.tolist() == [0, 0x20, 0]
    words = b.driver.describe_fault(1, 0x20)
    assert words == "overload (drive error 0x20); reduce the load, then reboot the drive"
    with pytest.raises(RunError) as error:
        b.driver.enable("effort")
    assert str(error.value) == f"joint 'j1': fault: {words}"
    assert b.torques() == [False] * 3
    b.rotors[1].fault_cause = ""
    b.send(codec.packet(2, codec.REBOOT), 0)
    b.driver.enable("effort")
    assert b.run(2).fault.tolist() == [0, 0, 0]


def test_a_drive_that_falls_off_is_a_fault(bench: Callable[..., Bench]) -> None:
    b = bench().start()
    b.nodes[0].put(t.TORQUE_ENABLE, 0)
    b.nodes[2].reset(b.t_ns)
    assert b.run(1).fault.tolist() == [faults.OFF, 0, faults.RESTARTED]
    b.driver.stop()
    b.driver.enable("effort")  # sets up what was lost
    assert b.run(1).fault.tolist() == [0, 0, 0]


def test_words_for_every_fault(bench: Callable[..., Bench]) -> None:
    describe = bench().driver.describe_fault
    assert describe(0, 0) == ""
    assert describe(0, 0x05) == (
        "input voltage and over temperature (drive error 0x05); "
        "check the supply, let it cool down, then reboot the drive"
    )
    assert describe(0, 0x40) == "unknown error (drive error 0x40); see the manufacturer's manual, then reboot the drive"
    assert describe(0, -1).startswith("no command in time")
    assert describe(0, -2) == "the drive switched its torque off by itself; check its supply"
    assert describe(0, -3).startswith("the drive was restarted and lost its settings")


def test_stop_from_any_state(bench: Callable[..., Bench]) -> None:
    b = bench()
    b.driver.stop()
    b.driver.close()
    b.start()
    b.run(5, effort=0.5)
    b.driver.stop()
    b.driver.stop()
    assert b.torques() == [False] * 3
    assert [rotor.effort for rotor in b.rotors] == [0, 0, 0]
    with pytest.raises(RunError, match=r"^the motors of j0, j1, j2 are off; enable the driver first$"):
        b.write()
    b.driver.enable("effort")
    b.driver.close()
    assert (b.torques(), b.is_open) == ([False] * 3, False)
    with pytest.raises(RunError, match=r"^the drives of j0, j1, j2 are not open; open the driver first$"):
        b.driver.enable("effort")


def test_a_stop_while_drives_are_switched_on_wins(bench: Callable[..., Bench]) -> None:
    b = bench()
    b.driver.open()

    def stop(answers: list[bytes]) -> list[bytes]:
        if b.torques()[0] and not b.driver._stopped:
            b.driver.stop()
        return answers

    b.spoil = stop
    with pytest.raises(RunError, match=r"^the motors of j0, j1, j2 were stopped; enable the driver first$"):
        b.driver.enable("effort")
    assert b.torques() == [False] * 3


def test_a_drive_that_does_not_switch_on(bench: Callable[..., Bench]) -> None:
    b = bench()
    b.driver.open()
    change = b.nodes[1].change
    b.nodes[1].change = lambda register, value: change(register, 0 if register == t.TORQUE_ENABLE else value)
    b.delay_ns = 5 * MS
    with pytest.raises(RunError, match=r"^joint 'j1': drive \d+ did not switch on within 1 s; check its supply$"):
        b.driver.enable("effort")
    assert b.torques() == [False] * 3


def test_commands_that_are_not_sent(bench: Callable[..., Bench]) -> None:
    b = bench().start()
    b.heard.clear()
    with pytest.raises(RunError, match=r"^the command of joint 'j0', 'j1', 'j2' is not finite and was not sent"):
        b.write(effort=float("nan"))
    b.cmd.valid_until_ns = b.t_ns - 1
    with pytest.raises(RunError, match=r"^the command of j0, j1, j2 has expired and was not sent; the program"):
        b.driver.write(b.cmd, b.t_ns + MS)
    assert b.heard == []
    with pytest.raises(RunError, match=r"have no mode 'warp'; use one of effort, position, velocity$"):
        b.driver.enable("warp")


@pytest.mark.parametrize("fast", [True, False])
def test_of_a_drive_that_went_away_the_old_values_stay(bench: Callable[..., Bench], fast: bool) -> None:
    b = bench(fast=fast).start()
    b.run(1)
    old = b.out.t_ns
    b.rotors[0].position, b.rotors[1].position = 0.5, 0.7
    b.emulator.nodes = b.nodes[:1] + b.nodes[2:]
    b.wait(b.t_ns + MS)
    state = b.read()
    assert state.position == pytest.approx([0.5, 0.0, 0.0], abs=1e-3)  # what stands before it in the chain is heard
    assert state.t_ns == old


def test_a_read_ends_by_its_deadline_and_late_answers_are_not_taken_for_others(bench: Callable[..., Bench]) -> None:
    b = bench().start()
    b.run(1)
    old, b.delay_ns = b.out.t_ns, 5 * MS
    b.rotors[0].position = 1.0  # measured at once, but the answer takes its time
    b.wait(b.t_ns + MS)
    begin = b.t_ns
    b.read()
    assert (b.t_ns, b.out.t_ns) == (begin + MS, old)
    b.rotors[0].position, b.delay_ns = 0.2, 20_000
    b.wait(b.t_ns + MS)
    for _ in range(25):
        b.write()
        assert b.read().position[0] != pytest.approx(1.0, abs=0.1)
    assert b.out.position[0] == pytest.approx(0.2, abs=1e-3)


def test_a_deadline_in_the_past_asks_nothing(bench: Callable[..., Bench]) -> None:
    b = bench().start()
    b.heard.clear()
    b.driver.read(b.out, b.t_ns)
    assert b.heard == []


def test_damage_on_the_line_is_counted_and_dropped(bench: Callable[..., Bench]) -> None:
    b = bench().start()
    b.run(1)
    lost = b.driver.lost

    def flip(answers: list[bytes]) -> list[bytes]:
        return [answer[:20] + bytes((answer[20] ^ 1,)) + answer[21:] for answer in answers]

    b.spoil = flip
    old = b.out.t_ns
    b.write()
    assert b.read().t_ns == old
    assert b.driver.lost > lost
    b.spoil = lambda answers: [b"\xff\xff" + a[:30] for a in answers]
    b.write()
    b.read()
    b.spoil = lambda answers: [c for a in answers for c in (a[:7], a[7:8], a[8:])]
    assert b.run(30).t_ns > old
    assert b.out.fault.tolist() == [0, 0, 0]


def test_a_lost_line_is_an_error_of_the_run(bench: Callable[..., Bench]) -> None:
    b = bench().start()
    b.is_open = False
    with pytest.raises(ConnectionLost):
        b.write()
    b.driver.stop()
    b.driver.close()


# --- mistakes -----------------------------------------------------------------------------------


def mistake(b: Bench) -> str:
    with pytest.raises(InputError) as error:
        b.driver.open()
    assert not b.is_open
    assert b.torques() == [False] * len(b.nodes)
    return str(error.value)


def test_nobody_answers(bench: Callable[..., Bench]) -> None:
    b = bench()
    b.emulator.nodes = b.nodes[:1]
    begin = b.t_ns
    place = "rig.yaml:5 joints.j1.id"
    assert mistake(b) == f"{place}: no answer from drive 2 on the line; check its power, the id and the bit rate"
    assert b.t_ns - begin < 1000 * MS


def test_another_model(bench: Callable[..., Bench]) -> None:
    b = bench()
    b.nodes[0].put(t.MODEL_NUMBER, 1030)
    said = "drive 1 is XM430-W210, not XM430-W350; write 'model: XM430-W210'"
    assert mistake(b) == f"rig.yaml:5 joints.j0.model: {said}"
    b.nodes[0].put(t.MODEL_NUMBER, 29)
    known = "known: XM430-W350, XM430-W210, XM540-W270, XM540-W150, XL430-W250"
    assert mistake(b) == f"rig.yaml:5 joints.j0.model: drive 1 is of model number 29, not XM430-W350; {known}"


@pytest.mark.parametrize(
    ("register", "value", "options", "said"),
    [
        (
            t.FIRMWARE,
            37,
            {},
            "its firmware 37 has no bus watchdog; update it to 45 or later with the manufacturer's tool",
        ),
        (
            t.FIRMWARE,
            44,
            {"fast": True},
            "its firmware 44 has no fast sync read; update it to 45 or later with the manufacturer's tool",
        ),
        (
            t.RETURN_LEVEL,
            0,
            {},
            "status return level 0 (register 68) keeps it silent; write 2 with the manufacturer's tool",
        ),
        (
            t.RETURN_LEVEL,
            1,
            {},
            "status return level 1 (register 68) keeps it silent; write 2 with the manufacturer's tool",
        ),
        (
            t.RETURN_DELAY_TIME,
            250,
            {"return_delay": 1e-5},
            "return delay time 500 µs (register 9 = 250) is longer than 'return_delay' allows; "
            "write 5 or less with the manufacturer's tool",
        ),
        (
            t.DRIVE_MODE,
            9,
            {},
            "drive mode 9 (register 10) lets goals switch the torque on; write 1 with the manufacturer's tool",
        ),
        (
            t.DRIVE_MODE,
            2,
            {},
            "drive mode 2 (register 10) makes it the slave of another; write 0 with the manufacturer's tool",
        ),
        (
            t.CURRENT_LIMIT,
            500,
            {},
            "the effort limit is 4 N*m at drive 3, whose own limit is 2.39813 N*m (register 38); "
            "lower the joint's limit or raise the drive's",
        ),
        (
            t.VELOCITY_LIMIT,
            50,
            {},
            "the velocity limit is 2 rad/s at drive 3, whose own limit is 1.19904 rad/s (register 44); "
            "lower the joint's limit or raise the drive's",
        ),
    ],
)
def test_settings_that_do_not_fit(
    bench: Callable[..., Bench], register: t.Register, value: int, options: dict[str, Any], said: str
) -> None:
    b = bench(**options)
    for node in b.nodes:
        node.put(t.RETURN_DELAY_TIME, 0)
    b.nodes[2].put(register, value)
    assert mistake(b) == f"rig.yaml:5 joints.j2.id: {said if 'at drive 3' in said else f'drive 3: {said}'}"


def test_limits_that_are_not_set_are_the_drives(bench: Callable[..., Bench]) -> None:
    b = bench(mode="position", limits=(-np.inf, np.inf, np.inf, np.inf)).start()
    assert b.nodes[0].get(t.GOAL_CURRENT) == 1193


def test_a_watchdog_that_is_too_short(bench: Callable[..., Bench]) -> None:
    with pytest.raises(InputError) as error:
        bench(watchdog=0.03)
    what = "0.03 s is too short for drives that count in 20 ms; use at least 0.04 s"
    assert str(error.value) == f"rig.yaml:5 watchdog: {what}"


def test_a_model_without_current(bench: Callable[..., Bench]) -> None:
    with pytest.raises(InputError) as error:
        bench(wiring={"model": "XL430-W250"})
    what = "XL430-W250 has no current control; use mode velocity or position"
    assert str(error.value) == f"rig.yaml:5 joints.j0.model: {what}"
    b = bench(mode="position", wiring={"model": "XL430-W250"}).start()
    assert [node.mode for node in b.nodes] == [t.EXTENDED_MODE] * 3
    assert b.run(1500, position=0.4).position == pytest.approx([0.4] * 3, abs=4e-3)
    with pytest.raises(RunError, match=r"have no mode 'effort'; use one of position, velocity$"):
        b.driver.enable("effort")


def test_what_the_program_knows_of_the_family(bench: Callable[..., Bench]) -> None:
    b = bench()
    assert get_args(get_type_hints(dynamixel.JointParams)["model"]) == tuple(t.MODELS)
    assert frozenset({"effort", "velocity", "position"}) == dynamixel.MODES
    assert dynamixel.SerialSettings(port="/dev/ttyUSB0").baudrate == 57600
    assert dynamixel.connection_name(b.params) == "/dev/ttyX"
    assert b.context.wiring[2].address == 3
    assert dynamixel.host(b.params, b.context).name == "/dev/ttyX"
    assert dynamixel.load(b.params, b.context).modes == dynamixel.MODES
