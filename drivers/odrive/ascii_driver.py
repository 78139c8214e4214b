"""One ODrive on a serial port: the ASCII protocol.

Answers carry no address: they come in the order of the questions. So the questions of a cycle are asked in one go, and
their answers are believed only when all of them are there and have the form that was expected.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cosim.drivers.odrive import ascii_codec as ascii_
from cosim.drivers.odrive import codes
from cosim.drivers.odrive.driver import ANSWER_TIME, RETRY_NS, STOP_NS, ODrive
from cosim.drivers.odrive.params import Params
from cosim.drivers.transport import now
from cosim.types import DriverContext

VERSIONS = ("fw_version_major", "fw_version_minor", "fw_version_revision")
# asked for in turns, one a cycle: the state every other time
SLOW = ("current_state", "active_errors", "current_state", "disarm_reason", "current_state", "TEMPERATURE")
MOTOR_TEMPERATURE, INVERTER_TEMPERATURE = "motor.motor_thermistor.temperature", "motor.fet_thermistor.temperature"
TRIES_PER_SECOND = 4  # to get one answer
GIVE_UP_NS = 50_000_000  # waiting for answers, beyond what they take on the wire


class AsciiDriver(ODrive):
    """One axis per joint, all on one board."""

    def __init__(self, params: Params, context: DriverContext, link: Any) -> None:
        super().__init__(params, context, link)
        count = len(self.joints)
        self._constants = [wiring.torque_constant for wiring in self.wiring]
        self._warmth = [MOTOR_TEMPERATURE] * count
        self._lines = ascii_.AsciiDecoder()
        self._questions: list[bytes] = []  # of a cycle, by its turn
        self._turn = 0
        self._awaited: tuple[str, ...] = ()  # what the answers to come are about, in their order
        self._got: list[str] = []
        self._asked_ns = 0
        # the last answer to a question outside of the cycle, or what the drive said instead
        self._value: float | None = None
        self._complaint = ""
        self._errors = [[0, 0] for _ in range(count)]  # active, reason of the last disarming
        self._explained = [False] * count  # whether the reason was asked for since the axis left its state
        assert params.port is not None
        self._patience = GIVE_UP_NS + int(200 * count * 10e9 / params.port.baudrate)

    # --- opening --------------------------------------------------------------------------------------

    def _meet(self) -> None:
        self._lines, self._awaited, self._got = ascii_.AsciiDecoder(), (), []
        self._errors = [[0, 0] for _ in self.joints]
        self._say("")  # ends what a program before may have left half said
        major, minor, revision = (int(self._ask_for(0, name)) for name in VERSIONS)
        if (major, minor) != (0, 6):
            runs = f"the drive runs firmware {major}.{minor}.{revision}"
            raise self._wrong(0, f"{runs}; this driver is for 0.6, update it with odrivetool")
        for k in range(len(self.joints)):
            warmth = self._get(k, MOTOR_TEMPERATURE)
            self._warmth[k] = MOTOR_TEMPERATURE if warmth == warmth else INVERTER_TEMPERATURE
        self._questions = [self._question(self._slow(turn)) for turn in range(len(SLOW))]

    def _slow(self, turn: int) -> str:
        return SLOW[turn % len(SLOW)]

    def _question(self, slow: str) -> bytes:
        lines = []
        for k, axis in enumerate(self._addresses):
            effort = "motor.torque_estimate" if self._constants[k] is None else "motor.foc.Iq_measured"
            path = self._warmth[k] if slow == "TEMPERATURE" else slow
            lines += [f"f {axis}", f"r axis{axis}.{effort}", f"r axis{axis}.{path}"]
        return b"".join(map(self._line, lines))

    # --- parameters and states ------------------------------------------------------------------------

    def _get(self, k: int, path: str, seconds: float = ANSWER_TIME) -> float:
        return self._ask_for(k, f"axis{self._addresses[k]}.{path}", seconds)

    def _ask_for(self, k: int, name: str, seconds: float = ANSWER_TIME) -> float:
        """Raises `_mute`, or what `_wrong` makes of a name that the drive does not know."""
        if self._awaited:
            self._wait(lambda: not self._awaited, self._patience * 1e-9, lambda: None)
            self._give_up()
        self._value, self._complaint = None, ""
        for _ in range(max(1, round(TRIES_PER_SECOND * seconds))):
            self._say(f"r {name}")
            self._expect((name,))
            if self._wait(lambda: not self._awaited, self._patience * 1e-9, lambda: None):
                break
            self._give_up()
        if self._complaint:
            raise self._wrong(k, f"the drive says '{self._complaint}' to 'r {name}'; look at its axes and its firmware")
        if self._value is None:
            raise self._mute(k)
        return self._value

    def _set(self, k: int, path: str, value: float) -> None:
        self._say(f"w axis{self._addresses[k]}.{path} {value:.9g}")

    def _off(self, k: int, deadline_ns: int) -> None:
        self.link.send(self._line(f"w axis{self._addresses[k]}.requested_state {codes.IDLE}"), deadline_ns)

    def _request(self, k: int, state: int) -> None:
        self._set(k, "requested_state", state)

    def _feed(self, k: int) -> None:
        self._say(f"u {self._addresses[k]}")

    def _clear(self, k: int) -> None:
        self._say("sc")
        self._errors[k] = [0, 0]

    def _called(self, k: int) -> str:
        return f"axis {self._addresses[k]}"

    def _slot_of(self, mode: str) -> tuple[float, float]:
        """Text has room for any effort."""
        return float("inf"), 0.0

    # --- the cycle ------------------------------------------------------------------------------------

    def _ask(self, deadline_ns: int) -> None:
        question = self._next_question()
        if question:
            self.link.send(question, deadline_ns)

    def _look(self, deadline_ns: int) -> None:
        """Questions do not feed."""
        self._ask(deadline_ns)

    def _command(
        self, angles: Sequence[float], speeds: Sequence[float], efforts: Sequence[float], deadline_ns: int
    ) -> None:
        lines, mode = [], self._mode
        for k, axis in enumerate(self._addresses):
            if mode == "effort":
                text = ascii_.torque(axis, efforts[k])
            elif mode == "velocity":
                text = ascii_.velocity(axis, speeds[k], efforts[k])
            else:
                text = ascii_.position(axis, angles[k], speeds[k], efforts[k])
            lines.append(self._line(text))
        self.link.send(b"".join(lines) + self._next_question(), deadline_ns)

    def _next_question(self) -> bytes:
        """Nothing while answers to the last one may still come."""
        if self._awaited:
            if now() - self._asked_ns < self._patience:
                return b""
            self._give_up()
        slow = self._slow(self._turn)
        question = self._questions[self._turn % len(SLOW)]
        self._turn += 1
        self._expect(("f", "effort", slow) * len(self.joints))
        return question

    def _expect(self, what: tuple[str, ...]) -> None:
        self._awaited, self._got, self._asked_ns = what, [], now()
        self._pending = 1

    def _give_up(self) -> None:
        """Answers are missing: none of them is believed, and what has come of them goes."""
        if self._awaited:
            self.lost += 1
        self._awaited, self._got, self._pending = (), [], 0
        self._lines = ascii_.AsciiDecoder()

    def _take(self, item: bytes) -> None:
        t_ns = now()
        for raw in self._lines.feed(item):
            line = ascii_.unwrap(raw)
            if line is None or not ascii_.numbers(line.text) or not self._awaited:
                self.lost += 1  # damaged, a complaint, or nobody asked
                if line is not None and len(self._awaited) == 1:
                    self._complaint = line.text
                    self._awaited, self._pending = (), 0
                continue
            self._got.append(line.text)
            if len(self._got) == len(self._awaited):
                self._believe(t_ns)

    def _believe(self, t_ns: int) -> None:
        """All answers are there."""
        awaited, got = self._awaited, self._got
        self._awaited, self._got, self._pending = (), [], 0
        if len(awaited) == 1:
            self._value = ascii_.number(got[0])
            return
        rows = []
        for k in range(len(self.joints)):
            pair = ascii_.feedback(got[3 * k])
            effort, slow = ascii_.number(got[3 * k + 1]), ascii_.number(got[3 * k + 2])
            if pair is None or effort is None or slow is None:
                self.lost += 1
                return
            rows.append((pair, effort, slow))
        for k, (pair, effort, slow) in enumerate(rows):
            self._angle[k], self._speed[k] = pair
            self._torque[k] = effort if self._constants[k] is None else effort * self._constants[k]
            self._heard_ns[k] = self._beat_ns[k] = t_ns
            self._learn(k, awaited[2], slow)
        self._time_ns = t_ns

    def _learn(self, k: int, what: str, value: float) -> None:
        """One of SLOW."""
        if what == "TEMPERATURE":
            self._degrees[k] = value
        elif value == value and abs(value) < 1 << 32:
            if what == "current_state":
                if self._on and int(value) != codes.CLOSED_LOOP == self._state[k]:
                    self._explained[k], self._turn = False, SLOW.index("disarm_reason")
                self._state[k] = int(value)
            else:
                self._explained[k] |= what == "disarm_reason"
                self._errors[k][what == "disarm_reason"] = int(value)
                self._error[k] = self._errors[k][0] | self._errors[k][1]

    def _own_fault(self, k: int) -> int:
        """An axis that left its state is asked for the reason before it is said to have none."""
        own = super()._own_fault(k)
        return 0 if own == codes.FELL_OUT and not self._explained[k] else own

    def _say(self, text: str) -> None:
        self.link.send(self._line(text), now() + max(STOP_NS, RETRY_NS))

    def _line(self, text: str) -> bytes:
        return ascii_.line(text, self._params.checksum)
