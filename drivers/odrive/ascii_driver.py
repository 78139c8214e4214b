"""One ODrive on a serial port: the ASCII protocol.

Answers have no address: they arrive in the order of the requests. Therefore the requests of a cycle are sent together,
and their answers are used only when all have arrived in the expected form. For some time
after answers that were missing, the requests begin with further `f`, each with another number of them: late answers to
earlier ones do not have this form.
"""

from __future__ import annotations

from cosim.core.driver_contract import DriverContext
from cosim.plugins.drivers.common.driver import RETRY_NS, STOP_NS
from cosim.plugins.drivers.odrive import ascii_codec as ascii_
from cosim.plugins.drivers.odrive import codes
from cosim.plugins.drivers.odrive.driver import ANSWER_TIME, ODrive
from cosim.plugins.drivers.odrive.params import Params
from cosim.plugins.drivers.transport import Connection

VERSIONS = ("fw_version_major", "fw_version_minor", "fw_version_revision")
# requested in turn, one per cycle: the state in every second one
SLOW = ("current_state", "active_errors", "current_state", "disarm_reason", "current_state", "TEMPERATURE")
MOTOR_TEMPERATURE, INVERTER_TEMPERATURE = "motor.motor_thermistor.temperature", "motor.fet_thermistor.temperature"
TRIES_PER_SECOND = 4  # for one answer
LATE_NS = 1_000_000_000  # by which answers may be late
MOST_MARKS = 5
TIMEOUT_NS = 50_000_000  # for answers, in addition to their transmission time


class AsciiDriver(ODrive[bytes]):
    """One axis per joint, all on one board."""

    def __init__(self, params: Params, context: DriverContext, link: Connection[bytes]) -> None:
        super().__init__(params, context, link)
        count = len(self.joints)
        self._constants = [joint.torque_constant for joint in self._wiring]
        self._temperature_paths = [MOTOR_TEMPERATURE] * count
        self._lines = ascii_.splitter()
        self._requests: list[bytes] = []  # of a cycle, by its turn
        self._turn = 0
        self._awaited: tuple[str, ...] = ()  # the quantities of the expected answers, in their order
        self._answers: list[str] = []
        self._late_ns = 0  # until then answers to an earlier request may come
        self._marks = 0  # further `f` in front of the last request
        self._requested_ns = 0
        # the last answer to a request outside of the cycle, or the drive's error text
        self._value: float | None = None
        self._error_text = ""
        self._errors = [[0, 0] for _ in range(count)]  # active, reason of the last disarming
        self._explained = [False] * count  # the reason was read after the axis left its state
        assert params.port is not None
        self._answer_timeout_ns = TIMEOUT_NS + int(200 * count * 10e9 / params.port.baudrate)

    # --- opening --------------------------------------------------------------------------------------

    def _identify(self) -> None:
        self._lines, self._awaited, self._answers = ascii_.splitter(), (), []
        self._errors = [[0, 0] for _ in self.joints]
        self._send_line("")  # ends an incomplete line of an earlier program
        major, minor, revision = (int(self._request_value(0, name)) for name in VERSIONS)
        if (major, minor) != (0, 6):
            runs = f"the drive runs firmware {major}.{minor}.{revision}"
            raise self._drive_error(0, f"{runs}; this driver is for 0.6, update it with odrivetool")
        for k in range(len(self.joints)):
            temperature = self._get(k, MOTOR_TEMPERATURE)
            self._temperature_paths[k] = MOTOR_TEMPERATURE if temperature == temperature else INVERTER_TEMPERATURE
        self._requests = [self._request(self._slow(turn)) for turn in range(len(SLOW))]

    def _slow(self, turn: int) -> str:
        return SLOW[turn % len(SLOW)]

    def _request(self, slow: str) -> bytes:
        lines = []
        for k, axis in enumerate(self._addresses):
            effort = "motor.torque_estimate" if self._constants[k] is None else "motor.foc.Iq_measured"
            path = self._temperature_paths[k] if slow == "TEMPERATURE" else slow
            lines += [f"f {axis}", f"r axis{axis}.{effort}", f"r axis{axis}.{path}"]
        return b"".join(map(self._line, lines))

    # --- parameters and states ------------------------------------------------------------------------

    def _get(self, k: int, path: str, seconds: float = ANSWER_TIME) -> float:
        return self._request_value(k, f"axis{self._addresses[k]}.{path}", seconds)

    def _request_value(self, k: int, name: str, seconds: float = ANSWER_TIME) -> float:
        """Raises the error of a drive that does not answer or does not have the parameter."""
        late = False
        if self._awaited:
            late = not self._wait(lambda: not self._awaited, self._answer_timeout_ns * 1e-9, lambda: None)
            self._discard_answers()
        self._value, self._error_text = None, ""
        for turn in range(max(1, round(TRIES_PER_SECOND * seconds))):
            if turn or late:
                self._feed_all()  # some axes may be on already
            self._drain()  # late answers: they do not say what they answer
            self._send_line(f"r {name}")
            self._expect((name,))
            if self._wait(lambda: not self._awaited, self._answer_timeout_ns * 1e-9, lambda: None):
                break
            self._discard_answers()
        if self._error_text:
            raise self._silent(
                k, f"the drive answers '{self._error_text}' to 'r {name}'; check its axes and its firmware"
            )
        if self._value is None:
            raise self._no_answer(k)
        return self._value

    def _set(self, k: int, path: str, value: float) -> None:
        self._send_line(f"w axis{self._addresses[k]}.{path} {value:.9g}")

    def _idle_item(self, k: int) -> bytes:
        return self._line(f"w axis{self._addresses[k]}.requested_state {codes.IDLE}")

    def _request_state(self, k: int, state: int) -> None:
        self._set(k, "requested_state", state)

    def _feed(self, k: int) -> None:
        self._send_line(f"u {self._addresses[k]}")

    def _clear(self, k: int) -> None:
        self._send_line("sc")
        self._errors[k] = [0, 0]

    def _drive_name(self, k: int) -> str:
        return f"axis {self._addresses[k]}"

    def _feedforward_of(self, mode: str) -> tuple[float, float]:
        """Text has no limit."""
        return float("inf"), 0.0

    # --- the cycle ------------------------------------------------------------------------------------

    def _request_feedback(self, deadline_ns: int) -> None:
        request = self._next_request()
        if request:
            self.link.send(request, deadline_ns)

    def _poll(self, deadline_ns: int) -> None:
        """Requests do not feed the watchdog."""
        self._request_feedback(deadline_ns)

    def _send_commands(
        self, position: list[float], velocity: list[float], effort: list[float], deadline_ns: int
    ) -> None:
        lines, mode = [], self._mode
        for k, axis in enumerate(self._addresses):
            if mode == "effort":
                text = ascii_.torque(axis, effort[k])
            elif mode == "velocity":
                text = ascii_.velocity(axis, velocity[k], effort[k])
            else:
                text = ascii_.position(axis, position[k], velocity[k], effort[k])
            lines.append(self._line(text))
        self.link.send(b"".join(lines) + self._next_request(), deadline_ns)

    def _next_request(self) -> bytes:
        """The next request; none while answers to the last one may still arrive."""
        if self._awaited:
            if self._now() - self._requested_ns < self._answer_timeout_ns:
                return b""
            self._discard_answers()
        slow = self._slow(self._turn)
        request = self._requests[self._turn % len(SLOW)]
        self._turn += 1
        self._marks = self._marks % MOST_MARKS + 1 if self._now() < self._late_ns else 0
        self._expect(("f",) * self._marks + ("f", "effort", slow) * len(self.joints))
        return self._line(f"f {self._addresses[0]}") * self._marks + request

    def _expect(self, what: tuple[str, ...]) -> None:
        self._awaited, self._answers, self._requested_ns = what, [], self._now()
        self._answers_due = 1

    def _discard_answers(self) -> None:
        """Answers are missing: discard the others."""
        if self._awaited:
            self._lose()
        self._awaited, self._answers, self._answers_due = (), [], 0
        self._lines = ascii_.splitter()

    def _lose(self) -> None:
        """Answers are missing or are not those that were requested: others may come late."""
        self._lost, self._late_ns = self._lost + 1, self._now() + LATE_NS

    def _take(self, item: bytes) -> None:
        t_ns = self._now()
        for raw in self._lines.feed(item):
            line = ascii_.unwrap(raw)
            if line is None or not ascii_.numbers(line.text) or not self._awaited:
                self._lose()  # damaged, an error message, or not requested
                if line is not None and len(self._awaited) == 1:
                    self._error_text = line.text
                    self._awaited, self._answers_due = (), 0
                continue
            self._answers.append(line.text)
            if len(self._answers) == len(self._awaited):
                self._use_answers(t_ns)

    def _use_answers(self, t_ns: int) -> None:
        """Use the answers to the last request, which are complete."""
        awaited, answers = self._awaited, self._answers
        self._awaited, self._answers, self._answers_due = (), [], 0
        if len(awaited) == 1:
            self._value = ascii_.number(answers[0])
            return
        rows, marks = [], len(answers) - 3 * len(self.joints)
        formed = all(ascii_.feedback(answer) is not None for answer in answers[:marks])
        for k in range(marks, len(answers), 3):
            pair = ascii_.feedback(answers[k])
            effort, slow = ascii_.number(answers[k + 1]), ascii_.number(answers[k + 2])
            if not formed or pair is None or effort is None or slow is None:
                self._lose()
                return
            rows.append((pair, effort, slow))
        feedback = self._feedback
        for k, (pair, effort, slow) in enumerate(rows):
            feedback.position[k], feedback.velocity[k] = pair
            feedback.effort[k] = effort if self._constants[k] is None else effort * self._constants[k]
            feedback.t_ns[k] = self._heartbeat_ns[k] = t_ns
            self._take_slow(k, awaited[-1], slow)
        self._time_ns = t_ns

    def _take_slow(self, k: int, what: str, value: float) -> None:
        """Use the answer to one of SLOW."""
        if what == "TEMPERATURE":
            self._feedback.temperature[k] = value
        elif value == value and abs(value) < 1 << 32:
            if what == "current_state":
                if self._is_on and int(value) != codes.CLOSED_LOOP == self._axis_state[k]:
                    self._explained[k], self._turn = False, SLOW.index("disarm_reason")
                self._axis_state[k] = int(value)
            else:
                self._explained[k] |= what == "disarm_reason"
                self._errors[k][what == "disarm_reason"] = int(value)
                self._error[k] = self._errors[k][0] | self._errors[k][1]

    def _undeclared_fault(self, k: int) -> int:
        """Reports an axis that left its state only after the reason was read."""
        own = super()._undeclared_fault(k)
        return 0 if own == codes.LEFT_CLOSED_LOOP and not self._explained[k] else own

    def _send_line(self, text: str) -> None:
        self.link.send(self._line(text), self._now() + max(STOP_NS, RETRY_NS))

    def _line(self, text: str) -> bytes:
        return ascii_.line(text, self._params.checksum)
