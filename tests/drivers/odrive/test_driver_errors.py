"""The driver of ODrives: switching on, stopping, lost connections, damaged frames, parameters."""

import numpy as np
import pytest

from cosim.drivers import odrive
from cosim.drivers.odrive import can_codec as can
from cosim.drivers.odrive import codes
from cosim.drivers.odrive.axis import Axis
from cosim.drivers.transport import CanFrame, ConnectionLost, estimate
from cosim.errors import InputError, RunError
from tests.drivers.odrive.driver_bench import BUS, PORT, Setup, enabled
from tests.kit.clock import MS


def test_a_receive_buffer_that_overflowed_between_reads(setup):
    """What came first was kept and the rest was lost, as with the buffer of a socket."""
    rig = setup()
    rig.driver.open()
    came = rig.wire._arrive
    rig.wire._arrive = lambda items: came(items) if len(rig.wire.queue) < 60 else None
    for mode in ("effort", "velocity"):
        rig.wire.step(1500)
        assert not any(rig.read(20 * MS).fault)
        rig.wire.step(1500)
        rig.driver.enable(mode)
        for _ in range(700):
            rig.cycle()
            assert not any(rig.state.fault)
        rig.driver.stop()


@pytest.mark.parametrize("watchdog", [0.0005, 0.001])
def test_a_watchdog_that_is_not_longer_than_the_period(setup, watchdog):
    with pytest.raises(InputError) as caught:
        setup(watchdog=watchdog)
    assert str(caught.value) == (f"rig.yaml:7 watchdog: must be longer than the period of 0.001 s, is {watchdog:g} s")


def test_a_drive_that_does_not_switch_on(setup):
    rig = setup()
    rig.driver.open()
    rig.axes[1].request = lambda state, t_ns: None
    match = r"^joint 'elbow': \w+ 1?\d did not switch on within 1 s; it is in idle; is it calibrated\?$"
    with pytest.raises(RunError, match=match):
        rig.driver.enable("effort")
    assert not rig.axes[0].armed


class Stubborn(Axis):
    """Keeps its watchdog."""

    watchdog_timeout = property(lambda self: 3.0, lambda self, value: None)


def test_a_drive_that_cannot_be_configured(setup):
    rig = setup()
    rig.driver.open()
    rig.axes[0].__class__ = Stubborn
    match = r"^joint 'shoulder': \w+ \d did not accept axis0\.config\.watchdog_timeout = 0\.1; it is 3$"
    with pytest.raises(RunError, match=match):
        rig.driver.enable("effort")


def test_order_of_calls(setup):
    rig = setup()
    with pytest.raises(RunError, match=r"^the drives of shoulder, elbow are not open; open the driver first$"):
        rig.driver.enable("effort")
    rig.driver.stop()
    rig.driver.open()
    with pytest.raises(
        RunError, match=r"^the drives of shoulder, elbow have no mode 'dance'; use one of effort, position, velocity$"
    ):
        rig.driver.enable("dance")
    with pytest.raises(RunError, match=r"^the motors of shoulder, elbow are off; enable the driver first$"):
        rig.write()
    rig.driver.enable("effort")
    rig.command.valid_until_ns = rig.wire.t_ns - 1
    with pytest.raises(
        RunError, match=r"^the command of shoulder, elbow has expired and was not sent; the program is too late$"
    ):
        rig.driver.write(rig.command, rig.wire.t_ns)
    for bad in (np.nan, np.inf, 1e39):
        rig.command.effort[0] = bad
        with pytest.raises(
            RunError, match=r"^the command of joint 'shoulder' is not finite and was not sent; check the controller$"
        ):
            rig.write()
    rig.command.effort[0] = 0.1
    rig.cycle()
    rig.driver.stop()
    rig.driver.stop()
    with pytest.raises(RunError, match="are off"):
        rig.write()


def test_a_lost_connection(setup):
    rig = enabled(setup, "effort")
    rig.wire.broken = True
    with pytest.raises(ConnectionLost):
        rig.write()
    with pytest.raises(ConnectionLost):
        rig.read()
    rig.driver.stop()
    rig.driver.close()
    rig.wire.broken = False
    rig.wire.step(150)
    assert not any(axis.armed for axis in rig.axes)  # the watchdogs did it


def test_stopped_by_another_thread_while_switching_on(setup):
    rig = setup()
    rig.driver.open()
    axis, request = rig.axes[0], rig.axes[0].request

    def meddled(state, t_ns):
        request(state, t_ns)
        if state == codes.CLOSED_LOOP:
            rig.driver.stop()

    axis.request = meddled
    match = r"^the motors of shoulder, elbow were stopped; enable the driver first$"
    with pytest.raises(RunError, match=match):
        rig.driver.enable("effort")
    assert not any(axis.armed for axis in rig.axes)


def test_damaged_frames_are_counted_and_dropped(monkeypatch):
    rig = enabled(lambda *a, **k: Setup(monkeypatch, "bus", *a, **k), "effort")
    rig.wire.spoil = lambda item: [item._replace(data=item.data[:3]), item, item._replace(extended=True)]
    rig.cycle(3)
    assert rig.driver.lost > 0
    assert list(rig.state.fault) == [0, 0]


def test_frames_of_other_nodes_are_ignored(monkeypatch):
    rig = enabled(lambda *a, **k: Setup(monkeypatch, "bus", *a, **k), "effort")
    rig.wire.queue.append(can.encode(40, can.GET_ENCODER_ESTIMATES, 9.0, 9.0))
    rig.wire.queue.append(CanFrame(40 << 5 | 9, b"\x01"))
    rig.wire.queue.append(can.request(3, can.GET_IQ))
    rig.cycle()
    assert rig.driver.lost == 0
    assert abs(rig.state.position[0]) < 0.1


def test_lost_and_damaged_lines(monkeypatch):
    """Answers that are missing are not mistaken for others, and the driver finds back."""
    rig = enabled(lambda *a, **k: Setup(monkeypatch, "port", *a, **k), "effort")
    rig.command.effort[:] = 0.0
    rig.rotors[0].position = rig.rotors[1].position = 10.0
    rig.cycle(10)
    numbers = iter(range(10_000))

    def spoil(item):
        n = next(numbers)
        if n % 7 == 3:
            return []
        if n % 11 == 5:
            return [bytes([item[0] ^ 1]) + item[1:]]
        return [item[:2], item[2:]]  # chunks are cut anywhere

    rig.wire.spoil = spoil
    efforts, positions = [], []
    for _ in range(400):
        rig.cycle()
        efforts += list(rig.state.effort)
        positions += [rig.state.position[0]]
    assert rig.driver.lost > 10
    assert set(efforts) == {0.0}
    assert positions == pytest.approx([10.0] * 400, abs=1e-4)
    rig.wire.spoil = lambda item: [item]
    rig.cycle(200)
    before = rig.state.t_ns
    rig.cycle(10)
    assert rig.state.t_ns == before + 10 * MS


def test_parameters():
    with pytest.raises(ValueError, match=r"^give either 'bus' or 'port'$"):
        odrive.Params()
    with pytest.raises(ValueError, match=r"^give either 'bus' or 'port'$"):
        odrive.Params(bus=BUS, port=PORT)
    with pytest.raises(ValueError, match=r"^'endpoints' is for drives on a 'bus'; leave it out$"):
        odrive.Params(port=PORT, endpoints="x.json")
    with pytest.raises(ValueError, match=r"^give either 'id' \(on CAN\) or 'axis' \(on a serial port\)$"):
        odrive.JointParams()
    assert odrive.JointParams(id=62).address == 62
    assert odrive.JointParams(axis=1).address == 1


def test_an_address_of_the_other_transport(monkeypatch):
    rig = Setup(monkeypatch, "bus")
    with pytest.raises(InputError) as caught:
        odrive.load(odrive.Params(port=PORT), rig.context, rig.wire)
    assert str(caught.value) == ("rig.yaml:7 joints.shoulder.id: on a 'port' a joint is wired by 'axis', not by 'id'")


@pytest.mark.parametrize("mode", ["effort", "velocity", "position"])
def test_traffic_is_what_a_cycle_sends(setup, kind, mode):
    rig = enabled(setup, mode)
    traffic = odrive.traffic(rig.params, rig.context)
    rig.wire.sent.clear()
    rig.cycle(64)
    if kind == "bus":

        def shapes(frames):
            return sorted((frame.id, len(frame.data), frame.remote) for frame in frames)

        assert shapes(traffic.out[:-1]) == shapes(rig.wire.sent[-6:])
        assert 1.1 < estimate(traffic, BUS, 1e-3) < 1.3  # two joints fill 1 Mbit/s at 1 kHz
    else:
        assert max(map(len, rig.wire.sent)) <= sum(map(len, traffic.out))
    assert odrive.connection_name(rig.params) == {"bus": "virtual bus", "port": "/dev/ttyACM0"}[kind]


@pytest.mark.parametrize("late_ms", [60, 75, 110, 170])
def test_answers_that_come_after_the_next_request_are_not_taken_for_its_answers(monkeypatch, late_ms):
    """Answers have no address: the state 8, closed loop, would be the error 0x8."""
    rig = enabled(lambda *args, **keys: Setup(monkeypatch, "port", *args, **keys), "effort", watchdog=1.0)
    rig.cycle(3)
    waiting: list[tuple[int, bytes]] = []

    def later(item):
        waiting.append((rig.wire.t_ns + late_ms * MS, item))
        return []

    for turn in range(400):
        rig.wire.spoil = later if turn % 100 < 3 else lambda item: [item]
        rig.command.effort[:] = 0.01
        rig.cycle()
        due = [item for t_ns, item in waiting if t_ns <= rig.wire.t_ns]
        waiting[:] = [entry for entry in waiting if entry[0] > rig.wire.t_ns]
        rig.wire.queue.extendleft(reversed(due))
        assert list(rig.state.fault) == [0, 0], rig.driver.describe_fault(0, int(rig.state.fault.max()))
    seen = rig.state.t_ns
    rig.cycle(5)
    assert rig.state.t_ns > seen
