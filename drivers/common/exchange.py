"""The cycle of a driver in machine code: `read` and `write` of the driver contract on the memory of an `EXCHANGE`.

Commands become the numbers of frames by a pure function of the family, and these become bytes by `frame_layout`;
received bytes become numbers, and these become a state by another pure function: those that the driver in Python calls,
see `cycle`. What is not nominal (a fault of a drive, a number or a command that is not finite, a connection that fails)
ends the cycle with a `CycleOutcome`: the driver in Python takes over, finds the same and reports it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from cosim.core.driver_contract import CycleOutcome
from cosim.core.machine_code import (
    array_at,
    call_at,
    code_of,
    doubles_at,
    entry,
    entry_of,
    fence,
    given_function,
    i64,
    machine_code,
    now,
    words_at,
)
from cosim.core.types import Array
from cosim.plugins.drivers.common.cycle import (
    COMMAND_SIZE,
    FAULTY,
    KD,
    KP,
    LARGEST_COMMAND,
    LIMIT,
    MEASURED_NS,
    MEASURED_POSITION,
    MEASURED_VELOCITY,
    POSITION,
    SCALE,
    STATE_EFFORT,
    STATE_POSITION,
    STATE_SIZE,
    STATE_VELOCITY,
    VELOCITY,
    ZERO,
    JointFunction,
)
from cosim.plugins.drivers.common.frame_layout import FORMS, FieldForm, Role
from cosim.plugins.drivers.transport.compiled_link import (
    DAMAGED,
    ERROR_FRAME,
    FRAME,
    FULL,
    INVALID,
    ITEM_SIZE,
    ITEM_WORDS,
    PLACES,
    SENT,
    arrivals_at,
    bytes_at,
    wait_readable,
)

ANY_SIZE = 64  # numbers of an array whose size its user knows
DATA_SIZE = 512  # bytes of a frame, at most
BUS_OFF_FRAME = 0x40  # class of error frames (linux/can/error.h)


FIELD = np.dtype([("at", "i8"), ("kind", "i8"), ("number", "i8")])  # number: its place among all joints'
SENT_FRAME = np.dtype([(name, "i8") for name in ("data", "first", "fields", "period", "phase")])
RECEIVED_FRAME = np.dtype(
    [
        *[(name, "i8") for name in ("id", "own", "joint", "size", "exact", "role", "first", "fields")],
        *[(name, "i8") for name in ("template", "mask")],  # addresses
        *[(name, "i8") for name in ("longest_silence_ns", "longest_gap_ns", "t_ns", "count", "waiting", "late")],
    ]
)
EXCHANGE = np.dtype(
    [
        *[(name, "i8") for name in ("link", "link_send", "link_receive", "link_settle")],  # see `compiled_link`
        *[(name, "i8") for name in ("descriptor", "arrivals", "scratch")],
        *[(name, "i8") for name in ("joints", "settings", "setting_count")],  # settings: doubles (joints, count)
        *[(name, "i8") for name in ("command_function", "state_function")],
        ("commands", "i8"),  # doubles (joints, COMMAND_SIZE)
        *[(name, "i8") for name in ("sent_numbers", "sent_count")],  # doubles (joints, count); last: requested effort
        *[(name, "i8") for name in ("received_numbers", "received_count")],
        *[(name, "i8") for name in ("parts", "whole_function", "verdict")],  # see `Reception.whole`
        *[(name, "i8") for name in ("sent_frames", "sent_frame_count", "sent_fields", "items", "due")],
        *[(name, "i8") for name in ("polls", "poll_count")],  # items that request feedback
        *[
            (name, "i8") for name in ("repeats", "repeat_count", "repeated_ns")
        ],  # those of `items` that do, see `SentFrame`
        *[(name, "i8") for name in ("stops", "stop_count")],  # items that switch the motors off
        *[(name, "i8") for name in ("received_frames", "received_frame_count", "received_fields")],
        ("states", "i8"),  # doubles (joints, STATE_SIZE), in the joints' units
        ("t_ns", "i8"),  # of the measurement
        ("saturated", "i8"),  # words (joints,): commands that were clipped
        *[(name, "i8") for name in ("commanded", "pending", "stopped", "sending")],
        *[
            (name, "i8") for name in ("written_ns", "quiet_from_ns", "quiet_until_ns", "longest_pause_ns")
        ],  # see `CycleLayout`
        *[(name, "i8") for name in ("cycles", "polled", "halts", "lost", "errors", "error")],
    ]
)

fields_at, sent_frames_at, received_frames_at = array_at(FIELD), array_at(SENT_FRAME), array_at(RECEIVED_FRAME)
exchanges_at = array_at(EXCHANGE)

_FORMS = np.array(FORMS, np.int64)  # of each kind
_SIZE, _BITS, _SHIFT, _SIGNED, _REAL, _BIG = range(len(FieldForm._fields))
_NOMINAL, _EXPIRED, _SUSPECT, _NOT_SENT, _LOST, _BUS_OFF, _STOPPED = (int(outcome) for outcome in CycleOutcome)
_MEASUREMENT, _ANSWER = int(Role.MEASUREMENT), int(Role.ANSWER)


@machine_code
def _word_at(data: Array, at: int, size: int, big: int) -> int:
    if size == 1:
        return int(data[at])
    if size == 2:
        first, second = int(data[at]), int(data[at + 1])
        return first << 8 | second if big else second << 8 | first
    first, second, third, fourth = int(data[at]), int(data[at + 1]), int(data[at + 2]), int(data[at + 3])
    if big:
        return first << 24 | second << 16 | third << 8 | fourth
    return fourth << 24 | third << 16 | second << 8 | first


@machine_code
def put(data: Array, at: int, kind: int, value: float) -> None:
    """Store a number in the bytes of a frame."""
    size, bits, shift, big = _FORMS[kind, _SIZE], _FORMS[kind, _BITS], _FORMS[kind, _SHIFT], _FORMS[kind, _BIG]
    if _FORMS[kind, _REAL]:
        single = np.empty(1, np.float32)
        single[0] = value
        whole = int(single.view(np.uint32)[0])
    else:
        whole = int(value)
    mask = ((1 << bits) - 1) << shift
    word = _word_at(data, at, size, big) & ~mask | whole << shift & mask
    for k in range(size):
        data[at + k] = word >> 8 * (size - 1 - k if big else k) & 0xFF


@machine_code
def get(data: Array, at: int, kind: int) -> float:
    """The number in the bytes of a frame."""
    bits = _FORMS[kind, _BITS]
    word = _word_at(data, at, _FORMS[kind, _SIZE], _FORMS[kind, _BIG])
    whole = word >> _FORMS[kind, _SHIFT] & (1 << bits) - 1
    if _FORMS[kind, _REAL]:
        single = np.empty(1, np.uint32)
        single[0] = whole
        return float(single.view(np.float32)[0])
    if _FORMS[kind, _SIGNED] and whole >> (bits - 1):
        whole -= 1 << bits
    return float(whole)


@machine_code
def fill_frames(exchange: np.record) -> int:
    """Store the numbers to be sent in the bytes of the frames that are due; how many are."""
    frames, count = sent_frames_at(exchange.sent_frames, exchange.sent_frame_count), 0
    numbers = doubles_at(exchange.sent_numbers, ANY_SIZE)
    for m in range(len(frames)):
        frame = frames[m]
        if exchange.cycles % frame.period != frame.phase:
            continue
        data = bytes_at(frame.data, DATA_SIZE)
        fields = fields_at(exchange.sent_fields + frame.first * 24, frame.fields)
        for k in range(len(fields)):
            put(data, fields[k].at, fields[k].kind, numbers[fields[k].number])
        item = words_at(exchange.items + m * ITEM_SIZE, ITEM_WORDS)
        due = words_at(exchange.due + count * ITEM_SIZE, ITEM_WORDS)
        for k in range(ITEM_WORDS):
            due[k] = item[k]
        count += 1
    return count


@machine_code
def is_whole(exchange: np.record, joint: int) -> bool:
    """Whether the parts of a measurement belong together; they are received then."""
    row = joint * exchange.received_count * 8
    call_at(
        exchange.whole_function,
        exchange.settings + joint * exchange.setting_count * 8,
        exchange.commands + joint * COMMAND_SIZE * 8,
        exchange.parts + row,
        exchange.verdict,
    )
    verdict = doubles_at(exchange.verdict, 1)[0]
    if verdict > 0.0:
        parts = doubles_at(exchange.parts + row, exchange.received_count)
        numbers = doubles_at(exchange.received_numbers + row, exchange.received_count)
        for k in range(exchange.received_count):
            numbers[k] = parts[k]
    exchange.lost += verdict == 0.0
    return verdict > 0.0


@machine_code
def take_frame(exchange: np.record, identifier: int, data: Array, size: int, t_ns: int) -> bool:
    """Take a received frame; whether it is one of the drives, a damaged one included."""
    frames = received_frames_at(exchange.received_frames, exchange.received_frame_count)
    known = False
    for m in range(len(frames)):
        frame = frames[m]
        if frame.id != identifier:
            continue
        if frame.own and size and (data[0] ^ bytes_at(frame.template, 1)[0]) & frame.own:
            continue
        known = exchange.whole_function == 0 or frame.role == _MEASUREMENT
        if size < frame.size or (frame.exact != 0 and size != frame.size):
            continue
        template, mask = bytes_at(frame.template, frame.size), bytes_at(frame.mask, frame.size)
        same = True
        for k in range(frame.size):
            same = same and (data[k] ^ template[k]) & mask[k] == 0
        if not same:
            continue
        fields = fields_at(exchange.received_fields + frame.first * 24, frame.fields)
        numbers = doubles_at(exchange.parts, ANY_SIZE)
        for k in range(len(fields)):
            numbers[fields[k].number] = get(data, fields[k].at, fields[k].kind)
        if exchange.whole_function and frame.role == _MEASUREMENT and not is_whole(exchange, frame.joint):
            return True
        frame.late = frame.longest_gap_ns != 0 and t_ns - frame.t_ns > frame.longest_gap_ns
        frame.count += 1
        frame.t_ns = t_ns
        exchange.pending -= frame.waiting
        frame.waiting = 0
        return True
    if known:
        exchange.lost += 1
    return known


@machine_code
def take_arrivals(exchange: np.record, count: int) -> int:
    """Take what the link has received; a CycleOutcome."""
    arrivals = arrivals_at(exchange.arrivals, PLACES)
    for place in range(count):
        arrived = arrivals[place]
        if arrived.what == FRAME:
            take_frame(exchange, arrived.id, bytes_at(arrived.address, arrived.length), arrived.length, arrived.t_ns)
        elif arrived.what == DAMAGED:
            exchange.lost += 1
        elif arrived.what == ERROR_FRAME:
            exchange.errors += 1
            if arrived.id & BUS_OFF_FRAME:
                return _BUS_OFF
        elif arrived.what == INVALID:
            exchange.errors += 1
    return _NOMINAL


@machine_code
def receive(exchange: np.record, deadline: int) -> int:
    """Take frames until no drive has to answer or the deadline has passed; a CycleOutcome."""
    while True:
        count = call_at(exchange.link_receive, exchange.link, 0, 0, 0)
        if count < 0:
            exchange.error = -count
            return _LOST
        outcome = take_arrivals(exchange, count)
        if outcome != _NOMINAL:
            return outcome
        if count == PLACES:
            continue
        if exchange.pending <= 0 or now(exchange.scratch) >= deadline:
            return _NOMINAL
        error = wait_readable(exchange.descriptor, deadline, exchange.scratch)
        if error:
            exchange.error = error
            return _LOST


@machine_code
def send(exchange: np.record, items: int, count: int, deadline: int) -> int:
    """Send items unless the motors were stopped; a CycleOutcome. `sending` is what a stop waits for."""
    exchange.sending = 1
    fence()
    outcome = _STOPPED
    if exchange.stopped == 0:
        result = call_at(exchange.link_send, exchange.link, items, count, deadline)
        outcome = _NOMINAL if result == SENT else _NOT_SENT if result == FULL else _LOST
        exchange.error = max(result, 0)
    fence()
    exchange.sending = 0
    return outcome


@machine_code
def expect_answers(exchange: np.record, after_command: bool) -> None:
    """From now on every drive has to answer."""
    frames = received_frames_at(exchange.received_frames, exchange.received_frame_count)
    exchange.pending = 0
    for m in range(len(frames)):
        frames[m].waiting = frames[m].role == _MEASUREMENT or (after_command and frames[m].role == _ANSWER)
        exchange.pending += frames[m].waiting


@machine_code
def ask(exchange: np.record, deadline: int) -> int:
    """Request measurements; a CycleOutcome."""
    if exchange.repeat_count and now(exchange.scratch) - exchange.written_ns > exchange.repeated_ns:
        return _SUSPECT
    outcome = send(exchange, exchange.polls, exchange.poll_count, deadline)
    if outcome == _NOMINAL and exchange.repeat_count:
        outcome = send(exchange, exchange.repeats, exchange.repeat_count, deadline)
    if outcome == _NOMINAL:
        exchange.polled += 1
        expect_answers(exchange, False)
    return outcome


@machine_code
def measure(exchange: np.record, deadline: int) -> int:
    """Take the measurements that commands have requested, or a request if none was sent; a CycleOutcome."""
    outcome = _NOMINAL if exchange.commanded else ask(exchange, deadline)
    exchange.commanded = 0
    return receive(exchange, deadline) if outcome == _NOMINAL else outcome


@machine_code
def measure_in_turn(exchange: np.record, deadline: int) -> int:
    """As `measure`, on a half-duplex link: only requests are answered, and only one thing is said at a time."""
    silence = now(exchange.scratch) - exchange.written_ns
    if exchange.commanded == 0 and exchange.quiet_from_ns < silence < exchange.quiet_until_ns:
        return _NOMINAL
    settled = call_at(exchange.link_settle, exchange.link, deadline, 0, 0)
    if settled <= 0:
        exchange.error = -settled
        return _LOST if settled < 0 else _NOMINAL
    exchange.commanded = 0
    outcome = ask(exchange, deadline)
    return receive(exchange, deadline) if outcome == _NOMINAL else outcome


@machine_code
def update_states(exchange: np.record) -> int:
    """The states of the joints from the numbers that were received; a CycleOutcome."""
    outcome, oldest = _NOMINAL, np.iinfo(np.int64).max
    frames = received_frames_at(exchange.received_frames, exchange.received_frame_count)
    commands = doubles_at(exchange.commands, exchange.joints * COMMAND_SIZE)
    at = now(exchange.scratch)
    for k in range(exchange.joints):
        commands[k * COMMAND_SIZE + MEASURED_NS] = np.inf
    for m in range(len(frames)):
        if frames[m].role == _MEASUREMENT:
            oldest = min(oldest, frames[m].t_ns)
            place = frames[m].joint * COMMAND_SIZE + MEASURED_NS
            commands[place] = min(commands[place], float(frames[m].t_ns))
        if frames[m].late:
            outcome = _SUSPECT
        if frames[m].longest_silence_ns and at - frames[m].t_ns > frames[m].longest_silence_ns:
            outcome = _SUSPECT
    exchange.t_ns = oldest
    for k in range(exchange.joints):
        command = doubles_at(exchange.commands + k * COMMAND_SIZE * 8, COMMAND_SIZE)
        state = doubles_at(exchange.states + k * STATE_SIZE * 8, STATE_SIZE)
        call_at(
            exchange.state_function,
            exchange.settings + k * exchange.setting_count * 8,
            exchange.commands + k * COMMAND_SIZE * 8,
            exchange.received_numbers + k * exchange.received_count * 8,
            exchange.states + k * STATE_SIZE * 8,
        )
        scale = command[SCALE]
        state[STATE_POSITION] = state[STATE_POSITION] / scale + command[ZERO]
        state[STATE_VELOCITY] = state[STATE_VELOCITY] / scale
        state[STATE_EFFORT] = state[STATE_EFFORT] * scale
        command[MEASURED_POSITION], command[MEASURED_VELOCITY] = state[STATE_POSITION], state[STATE_VELOCITY]
        if state[FAULTY] != 0.0 or not np.isfinite(state[STATE_POSITION] + state[STATE_VELOCITY]):
            outcome = _SUSPECT
    return outcome


@machine_code
def fill_numbers(exchange: np.record) -> int:
    """The numbers of the frames from the commands of the joints; a CycleOutcome."""
    saturated = words_at(exchange.saturated, exchange.joints)
    for k in range(exchange.joints):
        command = doubles_at(exchange.commands + k * COMMAND_SIZE * 8, COMMAND_SIZE)
        numbers = doubles_at(exchange.sent_numbers + k * exchange.sent_count * 8, exchange.sent_count)
        call_at(
            exchange.command_function,
            exchange.settings + k * exchange.setting_count * 8,
            exchange.commands + k * COMMAND_SIZE * 8,
            exchange.received_numbers + k * exchange.received_count * 8,
            exchange.sent_numbers + k * exchange.sent_count * 8,
        )
        for value in (command[POSITION], command[VELOCITY], command[KP], command[KD], numbers[-1]):
            if not abs(value) < LARGEST_COMMAND:
                return _SUSPECT
    for k in range(exchange.joints):
        requested = doubles_at(exchange.sent_numbers + ((k + 1) * exchange.sent_count - 1) * 8, 1)[0]
        limit = doubles_at(exchange.commands + (k * COMMAND_SIZE + LIMIT) * 8, 1)[0]
        saturated[k] += abs(requested) > limit
    return _NOMINAL


@cache
def joint_function(function: JointFunction) -> Any:
    """The entry of a pure function of a joint, see `cycle`, for `call_at`."""
    return entry_of(code_of(function), i64, i64, i64, i64, i64)(_call)


def _call(settings: int, command: int, received: int, result: int) -> int:
    numbers, state = doubles_at(received, ANY_SIZE), doubles_at(result, ANY_SIZE)
    given_function(doubles_at(settings, ANY_SIZE), doubles_at(command, ANY_SIZE), numbers, state)
    return 0


@entry(i64, i64, i64, i64, i64)
def read(address: int, deadline: int, _unused: int, _unused_too: int) -> int:
    """`MotorDriver.read` until the deadline [ns]; a CycleOutcome."""
    exchange = exchanges_at(address, 1)[0]
    in_turn = exchange.link_settle != 0
    outcome = measure_in_turn(exchange, deadline) if in_turn else measure(exchange, deadline)
    return update_states(exchange) if outcome == _NOMINAL else outcome


@entry(i64, i64, i64, i64, i64)
def write(address: int, deadline: int, valid_until: int, _unused: int) -> int:
    """`MotorDriver.write` until the deadline [ns]; a CycleOutcome."""
    exchange = exchanges_at(address, 1)[0]
    time = now(exchange.scratch)
    if time > valid_until:
        return _EXPIRED
    if exchange.longest_pause_ns and time - exchange.written_ns > exchange.longest_pause_ns:
        return _SUSPECT
    in_turn = exchange.link_settle != 0
    outcome = _NOMINAL if in_turn else receive(exchange, 0)
    if outcome == _NOMINAL:
        outcome = fill_numbers(exchange)
    if outcome == _NOMINAL:
        outcome = send(exchange, exchange.due, fill_frames(exchange), deadline)
    if outcome == _NOMINAL:
        exchange.commanded, exchange.written_ns = 1, now(exchange.scratch)
        exchange.cycles += 1
        if not in_turn:
            expect_answers(exchange, True)
    return outcome


@entry(i64, i64, i64, i64, i64)
def stop(address: int, _unused: int, _unused_too: int, _nor_this: int) -> int:
    """Switch the motors off, without waiting; a CycleOutcome."""
    exchange = exchanges_at(address, 1)[0]
    exchange.halts += 1
    result = call_at(exchange.link_send, exchange.link, exchange.stops, exchange.stop_count, 0)
    return _NOMINAL if result == SENT else _LOST
