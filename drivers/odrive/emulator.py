"""Emulated drives on a CAN bus: CANSimple of firmware 0.6.10 on an S1, one node per motor."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cosim.core.units import TURN
from cosim.plugins.drivers.common.motor import Motor
from cosim.plugins.drivers.common.unknown_requests import UnknownRequests
from cosim.plugins.drivers.odrive import can_codec as can
from cosim.plugins.drivers.odrive import codes
from cosim.plugins.drivers.odrive.axis import Axis
from cosim.plugins.drivers.odrive.properties import FUNCTION, PARAMETERS, S1_0_6_10, Endpoints
from cosim.plugins.drivers.transport import CanFrame

HARDWARE, FIRMWARE = (5, 2, 0), (0, 6, 10)
SERIAL = 0x3943_0000_0000  # of the first drive; the next ones are consecutive
BROADCASTS = frozenset({can.ESTOP, can.REBOOT, can.CLEAR_ERRORS})

_FLOAT_MAX = 3.4e38
# cyclic message -> attribute of the axis with its period [ms]
CYCLIC = {
    can.GET_VERSION: "version_ms",
    can.HEARTBEAT: "heartbeat_ms",
    can.GET_ERROR: "error_ms",
    can.GET_ENCODER_ESTIMATES: "encoder_ms",
    can.GET_IQ: "iq_ms",
    can.GET_TEMPERATURE: "temperature_ms",
    can.GET_BUS_VOLTAGE_CURRENT: "bus_ms",
    can.GET_TORQUES: "torques_ms",
    can.GET_POWERS: "powers_ms",
}


class Node:
    """One drive on the bus."""

    def __init__(self, axis: Axis, serial: int, endpoints: Endpoints = S1_0_6_10) -> None:
        self.axis, self.serial = axis, serial
        self.names = {endpoint.number: name for name, endpoint in endpoints.table.items()}
        self.endpoints = endpoints
        self.silent = False  # in its bootloader
        self.sent_ns = dict.fromkeys(CYCLIC, 0)
        self.hardware, self.firmware = HARDWARE, FIRMWARE

    def reset(self, t_ns: int) -> None:
        self.silent = False
        self.sent_ns = dict.fromkeys(CYCLIC, t_ns)
        self.axis.reset(t_ns)

    def handle(self, message: can.Message, t_ns: int) -> list[CanFrame]:
        """The answers to a command; unknown commands are ignored."""
        if message.command == can.RX_SDO:
            opcode, number, data = message.values
            return self._endpoint(opcode, number, data, t_ns)
        command = _COMMANDS.get(message.command)
        if command is not None:
            command(self, message.values, t_ns)
        return []

    def answer(self, command: int) -> CanFrame:
        """One of `can.ANSWERS`, with present values."""
        axis, node = self.axis, self.axis.node_id
        if command == can.GET_VERSION:
            return can.version(node, self.hardware, self.firmware)
        if command == can.ADDRESS:
            return can.address(node, self.serial)
        if command == can.HEARTBEAT:
            errors = axis.active_errors | axis.disarm_reason
            return can.encode(node, command, errors, axis.state, axis.procedure_result, axis.trajectory_done)
        if command == can.GET_ERROR:
            return can.encode(node, command, axis.active_errors, axis.disarm_reason)
        pair = _PAIRS[command](axis)
        return can.encode(node, command, *(min(max(value, -_FLOAT_MAX), _FLOAT_MAX) for value in pair))

    def cyclic(self, t_ns: int) -> list[CanFrame]:
        """The cyclic messages that are due."""
        frames = []
        for command, attribute in CYCLIC.items():
            period = getattr(self.axis, attribute) * 1_000_000
            if period > 0 and t_ns - self.sent_ns[command] >= period:
                # in whole periods, to keep the average rate; at most one period is caught up
                self.sent_ns[command] = max(self.sent_ns[command] + period, t_ns - period)
                frames.append(self.answer(command))
        return frames

    def reboot(self, values: tuple, t_ns: int) -> None:
        action = values[0]
        if action == codes.REBOOT_SAVE and not self.axis.armed:
            self.axis.save()
        elif action == codes.REBOOT_ERASE:
            self.axis.configure()
            self.axis.save()
        if action in (codes.REBOOT_ONLY, codes.REBOOT_SAVE, codes.REBOOT_ERASE):
            self.reset(t_ns)

    def enter_bootloader(self, values: tuple, t_ns: int) -> None:
        """Enter the bootloader, until the next power-on."""
        self.axis.request(codes.IDLE, t_ns)
        self.silent = True

    def _endpoint(self, opcode: int, number: int, data: bytes, t_ns: int) -> list[CanFrame]:
        """Read, write or call an endpoint; this firmware does not confirm writes."""
        name = self.names.get(number)
        if name is None:
            return []
        if name == FUNCTION:
            if opcode == can.WRITE:
                self.axis.feed(t_ns)
            return []
        value = self.endpoints.table[name].value
        if value is None:
            return []
        if opcode == can.READ:
            now = getattr(self.axis, PARAMETERS[name][0])
            if value.format == "<f":
                now = min(max(now, -_FLOAT_MAX), _FLOAT_MAX) if abs(now) != float("inf") else now
            return [can.endpoint(self.axis.node_id, 0, number, value.pack(now).ljust(4, b"\0"), can.TX_SDO)]
        if opcode == can.WRITE and len(data) >= value.size:
            write(self.axis, name, value.unpack_from(data)[0], t_ns)
        return []


class Emulator:
    """A bus of drives; `nodes` in the order of the motors."""

    def __init__(self, motors: Sequence[Motor], ids: Sequence[int], endstops: Sequence[bool]) -> None:
        rows = enumerate(zip(motors, ids, endstops, strict=True))
        self.unknown = UnknownRequests()
        self.nodes = [Node(Axis(motor, number, switch), SERIAL + k) for k, (motor, number, switch) in rows]

    def handle(self, item: CanFrame, t_ns: int) -> list[CanFrame]:
        """The answers to a frame. Every frame to an axis feeds its watchdog, requests too (can_simple.cpp)."""
        request = can.request_of(item)
        if request is not None:
            node, command = request
            if node == can.BROADCAST:
                return [n.answer(command) for n in self.nodes if not n.silent] if command == can.ADDRESS else []
            for one in self._at(node):
                one.axis.feed(t_ns)
            return [one.answer(command) for one in self._at(node)]
        message = can.decode(item)
        if message is None:
            self._note(item)
            return []
        if message.command == can.ADDRESS:
            self._assign(*message.values)
            return []
        if message.node == can.BROADCAST:
            to = [one for one in self.nodes if not one.silent] if message.command in BROADCASTS else []
        else:
            to = self._at(message.node)
        answers = []
        for one in to:
            if message.node != can.BROADCAST:
                one.axis.feed(t_ns)
            answers += one.handle(message, t_ns)
        return answers

    def _note(self, item: CanFrame) -> None:
        """A frame of no command of the protocol to one of the drives."""
        node, command = item.id >> 5, item.id & 0x1F
        if not item.extended and self._at(node):
            kind = "a remote frame of" if item.remote else f"{len(item.data)} bytes of"
            self.unknown.note(f"node {node}: {kind} command {command:#04x}")

    def process(self, t_ns: int) -> list[CanFrame]:
        """One step: control loops, watchdogs, cyclic messages."""
        frames = []
        for node in self.nodes:
            node.axis.process(t_ns)
            if not node.silent and node.axis.node_id != can.BROADCAST:
                frames += node.cyclic(t_ns)
        return frames

    def reset(self, t_ns: int) -> None:
        for node in self.nodes:
            node.reset(t_ns)

    def _at(self, number: int) -> list[Node]:
        return [node for node in self.nodes if node.axis.node_id == number and not node.silent]

    def _assign(self, number: int, serial: bytes) -> None:
        """A drive gets the node id; another that has it becomes unaddressed."""
        chosen = [node for node in self.nodes if node.serial == int.from_bytes(serial, "little") and not node.silent]
        if not chosen or number > can.BROADCAST:
            return
        for node in self._at(number):
            node.axis.node_id = can.BROADCAST
        chosen[0].axis.node_id = number


def write(axis: Axis, name: str, value: float, t_ns: int) -> bool:
    """Set a parameter of the axis; False if it is read-only."""
    attribute, writable = PARAMETERS[name]
    if not writable:
        return False
    if attribute == "requested_state":
        axis.request(int(value), t_ns)
    elif attribute == "input_pos":
        axis.move(value)
    elif attribute != "node_id" or 0 <= value <= can.BROADCAST:
        setattr(axis, attribute, value)
    return True


# --- commands: effects on the axis ---------------------------------------------------------------


def _input_position(node: Node, values: tuple[float, ...], t_ns: int) -> None:
    """The feedforward fields were decoded with the default scale; the drive's may differ."""
    axis = node.axis
    velocity, torque = (value * can.FEEDFORWARD for value in values[1:])
    axis.input_vel = velocity / TURN / axis.input_vel_scale if axis.input_vel_scale else 0.0
    axis.input_torque = torque / axis.input_torque_scale if axis.input_torque_scale else 0.0
    axis.move(values[0] / TURN)


def _modes(node: Node, values: tuple[int, ...], t_ns: int) -> None:
    """The drive stores the modes as bytes."""
    node.axis.control_mode, node.axis.input_mode = (value & 0xFF for value in values)


def _sets(*fields: tuple[str, float]) -> Callable[[Node, tuple[float, ...], int], None]:
    """A command that sets attributes of the axis to values, each divided by its unit in SI."""

    def command(node: Node, values: tuple[float, ...], t_ns: int) -> None:
        for (attribute, unit), value in zip(fields, values, strict=True):
            setattr(node.axis, attribute, value / unit if unit != 1.0 else value)

    return command


_COMMANDS: dict[int, Callable[[Node, tuple, int], None]] = {
    can.ESTOP: lambda node, values, t_ns: node.axis.estop(),
    can.SET_AXIS_STATE: lambda node, values, t_ns: node.axis.request(values[0], t_ns),
    can.SET_CONTROLLER_MODE: _modes,
    can.SET_INPUT_POS: _input_position,
    can.SET_INPUT_VEL: _sets(("input_vel", TURN), ("input_torque", 1.0)),
    can.SET_INPUT_TORQUE: _sets(("input_torque", 1.0)),
    can.SET_LIMITS: _sets(("vel_limit", TURN), ("current_soft_max", 1.0)),
    can.SET_TRAJ_VEL_LIMIT: _sets(("traj_vel_limit", TURN)),
    can.SET_TRAJ_ACCEL_LIMITS: _sets(("traj_accel_limit", TURN), ("traj_decel_limit", TURN)),
    can.SET_TRAJ_INERTIA: _sets(("inertia", 1.0 / TURN)),
    can.REBOOT: Node.reboot,
    can.CLEAR_ERRORS: lambda node, values, t_ns: node.axis.clear_errors(),
    can.SET_ABSOLUTE_POSITION: lambda node, values, t_ns: node.axis.set_position(values[0] / TURN),
    can.SET_POS_GAIN: _sets(("pos_gain", 1.0)),
    can.SET_VEL_GAINS: _sets(("vel_gain", 1.0 / TURN), ("vel_integrator_gain", 1.0 / TURN)),
    can.ENTER_DFU_MODE: Node.enter_bootloader,
}
_PAIRS: dict[int, Callable[[Axis], tuple[float, float]]] = {
    can.GET_ENCODER_ESTIMATES: lambda axis: (axis.pos_estimate * TURN, axis.vel_estimate * TURN),
    can.GET_IQ: lambda axis: (axis.iq_setpoint, axis.iq_measured),
    can.GET_TEMPERATURE: lambda axis: (axis.fet_temperature, axis.motor_temperature),
    can.GET_BUS_VOLTAGE_CURRENT: lambda axis: (axis.motor.voltage, axis.bus_current),
    can.GET_TORQUES: lambda axis: (axis.torque, axis.torque_estimate),
    can.GET_POWERS: lambda axis: (axis.mechanical_power, axis.mechanical_power),
}
