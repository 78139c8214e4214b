"""A Damiao client of another author commands the emulated drive: registers, enable, motion, faults, timeout."""

import can
import pytest
from damiao_motor import DaMiaoMotor
from damiao_motor.core.motor import REGISTER_TABLE

from cosim.plugins.drivers.common.motor import Rotor
from cosim.plugins.drivers.mit.emulator import Emulator, MitDrive
from cosim.plugins.drivers.mit.params import JointParams
from cosim.plugins.drivers.mit.registers import SETTINGS, store
from cosim.plugins.drivers.transport import CanFrame

MS = 1_000_000


class Bus:
    """The emulated drive behind the interface of a bus of python-can."""

    def __init__(self) -> None:
        self.rotor, self.t_ns = Rotor(max_effort=7.0), 0
        self.emulator = Emulator({3: MitDrive(self.rotor, JointParams(id=3, master=0x13, model="DM4310"), 0.1)})
        self.motor = DaMiaoMotor(3, 0x13, self, motor_type="4310")

    def send(self, message: can.Message) -> None:
        for frame in self.emulator.handle(CanFrame(message.arbitration_id, bytes(message.data)), self.t_ns):
            assert frame.id == 0x13
            self.motor.process_feedback_frame(frame.data, frame.id)

    def pass_by(self, ms: int) -> None:
        for _ in range(ms):
            self.t_ns += MS
            self.emulator.process(self.t_ns)
            self.rotor.advance(1e-3)


@pytest.fixture
def bus():
    return Bus()


def test_registers_are_read_and_written(bus):
    for number, value in ((21, 12.5), (22, 30.0), (23, 10.0), (9, 0), (10, 2)):
        bus.motor.request_register_reading(number)
        assert bus.motor.registers[number] == value
    bus.motor.set_can_timeout(250)
    bus.motor.write_register(10, 1)
    for number, value in ((9, 5000), (10, 1)):
        bus.motor.request_register_reading(number)
        assert bus.motor.registers[number] == value


def test_an_enabled_drive_holds_a_position_and_reports_it(bus):
    motor = bus.motor
    motor.request_motor_feedback()
    assert motor.state["status"] == "DISABLED"
    motor.enable()
    assert motor.state["status"] == "ENABLED"
    for _ in range(2000):
        motor.send_cmd_mit(0.5, 0.0, stiffness=8.0, damping=0.2)
        bus.pass_by(1)
    assert motor.state["pos"] == pytest.approx(0.5, abs=5e-3)
    assert bus.rotor.position == pytest.approx(0.5, abs=5e-3)
    motor.send_cmd_mit(feedforward_torque=2.0)
    bus.pass_by(1)
    assert bus.rotor.effort == pytest.approx(2.0, abs=20 / 4095)
    motor.request_motor_feedback()
    assert motor.state["torq"] == pytest.approx(2.0, abs=20 / 4095)
    motor.disable()
    bus.pass_by(1)
    assert motor.state["status"] == "DISABLED" and bus.rotor.effort == 0.0


def test_its_timeout_and_faults_are_reported_until_they_are_cleared(bus):
    motor = bus.motor
    motor.set_can_timeout(50)
    motor.enable()
    motor.send_cmd_mit(feedforward_torque=1.0)
    bus.pass_by(40)
    motor.request_motor_feedback()
    assert motor.state["status"] == "ENABLED"
    bus.pass_by(20)
    motor.request_motor_feedback()
    assert motor.state["status"] == "LOST_COMM" and bus.rotor.effort == 0.0
    motor.clear_error()
    assert motor.state["status"] == "DISABLED"
    for cause, status in (("overcurrent", "OVER_CURRENT"), ("undervoltage", "UNDER_VOLTAGE")):
        bus.rotor.fault_cause = cause
        bus.pass_by(1)
        bus.rotor.fault_cause = ""
        motor.request_motor_feedback()
        assert motor.state["status"] == status
        motor.enable()
        assert motor.state["status"] == status
        motor.clear_error()
        assert motor.state["status"] == "DISABLED"


def test_registers_are_kept_without_power_when_they_are_stored(bus):
    sent: list[can.Message] = []
    send = bus.send
    bus.send = lambda message: (sent.append(message), send(message))[1]
    bus.motor.write_register(25, 0.25)
    bus.emulator.reset(0)
    bus.motor.request_register_reading(25)
    assert bus.motor.registers[25] == pytest.approx(3.72e-4)
    bus.motor.write_register(25, 0.25)
    bus.motor.store_parameters()
    assert (sent[-1].arbitration_id, bytes(sent[-1].data)) == (0x7FF, store(3).data)
    bus.emulator.reset(0)
    bus.motor.request_register_reading(25)
    assert bus.motor.registers[25] == 0.25


def test_the_settings_are_the_registers_that_the_client_may_write():
    writable = {info.variable: number for number, info in REGISTER_TABLE.items() if info.access == "RW"}
    own = {"MST_ID", "ESC_ID", "TIMEOUT", "CTRL_MODE", "can_br"}
    assert {name: number for name, number in writable.items() if name not in own} == SETTINGS
