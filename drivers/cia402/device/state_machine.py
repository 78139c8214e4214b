"""The power drive system of the emulated drive: CiA 402-2's state machine, its faults and its statusword."""

from __future__ import annotations

from cosim.plugins.drivers.cia402 import codec, faults, profile
from cosim.plugins.drivers.cia402.device.node import Node
from cosim.plugins.drivers.cia402.device.objects import ERRORS_KEPT
from cosim.plugins.drivers.cia402.profile import (
    DISABLE_VOLTAGE,
    DISABLED,
    ENABLE,
    ENABLED,
    FAULT,
    POWERED,
    QUICK_STOP,
    QUICK_STOP_COMMAND,
    REACTING,
    READY,
    SHUTDOWN,
    SWITCH_ON,
    SWITCHED_ON,
)

_ERRORS, _ERROR_REGISTER, _ERROR_CODE = 0x100300, 0x100100, 0x603F00
_ABORT_OPTION, _QUICK_OPTION, _FAULT_OPTION = 0x600700, 0x605A00, 0x605E00
_HOLDING_OPTIONS = (5, 6)  # quick stop options with which the drive holds afterwards, and may be enabled again

# transitions 2 to 11 of the standard
_TRANSITIONS = {
    (DISABLED, SHUTDOWN): READY,
    (READY, SWITCH_ON): SWITCHED_ON,
    (READY, ENABLE): ENABLED,
    (READY, DISABLE_VOLTAGE): DISABLED,
    (READY, QUICK_STOP_COMMAND): DISABLED,
    (SWITCHED_ON, ENABLE): ENABLED,
    (SWITCHED_ON, SHUTDOWN): READY,
    (SWITCHED_ON, DISABLE_VOLTAGE): DISABLED,
    (SWITCHED_ON, QUICK_STOP_COMMAND): DISABLED,
    (ENABLED, SWITCH_ON): SWITCHED_ON,
    (ENABLED, SHUTDOWN): READY,
    (ENABLED, DISABLE_VOLTAGE): DISABLED,
    (ENABLED, QUICK_STOP_COMMAND): QUICK_STOP,
    (QUICK_STOP, DISABLE_VOLTAGE): DISABLED,
}


def _command(word: int) -> int:
    """The command in the lower bits of a controlword."""
    if not word & 0x02:
        return DISABLE_VOLTAGE
    if not word & 0x04:
        return QUICK_STOP_COMMAND
    if not word & 0x01:
        return SHUTDOWN
    return ENABLE if word & 0x08 else SWITCH_ON


def enter(node: Node, state: int) -> None:
    """Change the state; a motion continues only from one powered state to another."""
    if state == QUICK_STOP and node.value(_QUICK_OPTION) == 0:
        state = DISABLED
    if state == node.state:
        return
    before, node.state = node.state, state
    node.braking = node.window_time = 0.0
    node.homing = False
    node.goal = node.start = node.demand = node.actual()
    node.target_ns = node.t_ns
    node.rate = node.speed() if state in POWERED else 0.0
    if before == ENABLED:
        node.integral = node.sense * node.requested  # a ramp begins with the present torque
    if state not in POWERED:
        node.integral = 0.0
        node.motor.request(0.0)


def control(node: Node, word: int) -> None:
    """Apply a controlword; the modes use the edges of bit 4, see `motion`."""
    before, node.control = node.control, word
    if word & profile.RESET:
        if node.state == FAULT and not before & profile.RESET:
            _reset(node)
        return
    command = _command(word)
    if node.state == QUICK_STOP and command == ENABLE and node.value(_QUICK_OPTION) in _HOLDING_OPTIONS:
        enter(node, ENABLED)
        return
    enter(node, _TRANSITIONS.get((node.state, command), node.state))


def _reset(node: Node) -> None:
    node.errors = []
    check(node, react=False)
    if not node.errors:
        _clear_errors(node)
        enter(node, DISABLED)


def _clear_errors(node: Node) -> None:
    node.errors = []
    node.values[_ERROR_REGISTER] = node.values[_ERROR_CODE] = 0
    _send_emergency(node, 0)


def _send_emergency(node: Node, code: int) -> None:
    if node.nmt in (codec.RUNNING, codec.PREPARED):
        node.send(codec.emergency(node.id, code, node.value(_ERROR_REGISTER)))


def report(node: Node, code: int) -> None:
    """Report an error: error register, history and an EMCY message, once until it is reset."""
    if code in node.errors:
        return
    node.errors.append(code)
    values = node.values
    values[_ERROR_REGISTER] = node.value(_ERROR_REGISTER) | 1 | faults.FAULTS[code].register
    values[_ERROR_CODE] = code
    history = [code] + [node.value(_ERRORS + 1 + k) for k in range(ERRORS_KEPT - 1)]
    values.update((_ERRORS + 1 + k, old) for k, old in enumerate(history))
    values[_ERRORS] = min(ERRORS_KEPT, node.value(_ERRORS) + 1)
    _send_emergency(node, code)


def fault(node: Node, code: int) -> None:
    """Transition 13: an error that ends operation."""
    report(node, code)
    ramp = node.state in POWERED and node.value(_FAULT_OPTION) != 0 and not faults.FAULTS[code].abrupt
    if node.state == FAULT or (node.state == REACTING and ramp):
        return
    enter(node, REACTING if ramp else FAULT)


def check(node: Node, react: bool = True) -> None:
    """Check the motor; with `react` each cause is a fault, otherwise it is only reported."""
    motor = node.motor
    cause = "encoder" if node.encoder.lost else motor.fault_cause
    codes = [faults.OF_FAULT_CAUSE[cause]] if cause in faults.OF_FAULT_CAUSE else []
    if motor.temperature > motor.max_temperature:
        codes.append(faults.OVERTEMPERATURE)
    for code in codes:
        if react:
            fault(node, code)
        else:
            report(node, code)


def connection_lost(node: Node, code: int) -> None:
    """The commands ramp_ended: apply the abort connection option 6007h."""
    option = node.value(_ABORT_OPTION)
    if option == 1:
        fault(node, code)
        return
    report(node, code)
    if option == 2 and node.state in (READY, SWITCHED_ON, ENABLED, QUICK_STOP):
        enter(node, DISABLED)
    elif option == 3:
        enter(node, _TRANSITIONS.get((node.state, QUICK_STOP_COMMAND), node.state))


def connection_restored(node: Node) -> None:
    """A missed heartbeat is received again; a fault persists until it is reset."""
    if node.state not in (REACTING, FAULT) and node.errors:
        _clear_errors(node)


def halted(node: Node) -> bool:
    return node.state == ENABLED and bool(node.control & profile.HALT)


def ramp_ended(node: Node) -> None:
    """The ramp of a quick stop or of a fault reaction has ended: transitions 12 and 14."""
    if node.state == REACTING:
        enter(node, FAULT)
    elif node.state == QUICK_STOP and node.value(_QUICK_OPTION) not in _HOLDING_OPTIONS:
        enter(node, DISABLED)


def statusword(node: Node) -> int:
    word = profile.STATUS[node.state][1]
    if node.motor.fault_cause != "undervoltage":
        word |= profile.VOLTAGE
    if node.nmt == codec.RUNNING:
        word |= profile.REMOTE
    if node.state == ENABLED and node.limited:
        word |= profile.LIMITED
    if node.state == ENABLED or node.mode == profile.HOMING:
        word |= node.bits
    return word
