"""One exchange at a time on a half-duplex link, and the bus load that follows from it."""

import pytest

from cosim.plugins.drivers.modbus import codec
from cosim.plugins.drivers.modbus.codec import RtuRequest, silence
from cosim.plugins.drivers.transport import SerialParams, TrafficMeter
from cosim.plugins.drivers.transport.half_duplex import Exchanges, HalfDuplexLink
from tests.kit.clock import MS, FakeClock
from tests.kit.connection import FakeConnection

BAUDRATE, RESPONSE, PAUSE = 100_000, 4e-3, 2e-3
FIRST, SECOND = RtuRequest(1, 3, 0x2000, 2), RtuRequest(2, 3, 0x2000, 2)
ONE = RtuRequest(1, 6, at=0x3000, words=(15,))


class Slow(FakeConnection):
    """answers: bytes -> (delay [ns], bytes) of what comes after a request; sent: (time, bytes)."""

    name, meter = "slow", TrafficMeter()

    def __init__(self, answers):
        super().__init__(FakeClock(time=0))
        self.answers, self.sent, self.coming = answers, [], []

    def send(self, item, deadline_ns):
        self.sent.append((self.t_ns, item))
        self.coming += [(self.t_ns + delay, answer) for delay, answer in self.answers.get(item, ())]

    def receive(self, deadline_ns):
        due = min((row for row in self.coming if row[0] <= max(deadline_ns, self.t_ns)), default=None)
        self.t_ns = max(self.t_ns, due[0] if due else deadline_ns)
        if due is None:
            return None
        self.coming.remove(due)
        return due[1]


def line(answers):
    link = Slow({codec.encode(request): rows for request, rows in answers.items()})
    made = HalfDuplexLink(link, codec, BAUDRATE, RESPONSE, PAUSE)
    made.open()
    return made, link


def both() -> bytes:
    return codec.encode(FIRST) + codec.encode(SECOND)


def test_the_second_request_is_sent_after_the_answer_to_the_first_and_a_pause():
    one, two = codec.answer(FIRST, (1, 2)), codec.answer(SECOND, (3, 4))
    made, link = line({FIRST: [(3 * MS, one)], SECOND: [(1 * MS, two)]})
    made.send(both(), 0)
    assert [item for _, item in link.sent] == [codec.encode(FIRST)]
    assert (made.receive(50 * MS), made.request) == (one, FIRST)
    assert (made.receive(50 * MS), made.request) == (two, SECOND)
    assert link.sent[1] == (5 * MS, codec.encode(SECOND))
    assert made.unanswered == 0 and not made.pending


def test_an_answer_that_does_not_come_is_counted_and_the_next_request_is_sent():
    two = codec.answer(SECOND, (3, 4))
    made, link = line({SECOND: [(1 * MS, two)]})
    made.send(codec.encode(SECOND), 0)
    assert made.receive(100 * MS) == two
    link.t_ns = 200 * MS
    made.send(both(), 0)
    assert made.receive(300 * MS) == two
    assert made.unanswered == 1
    wire = 1e9 * 10 * (8 + 9) / BAUDRATE
    assert link.sent[2][0] == 200 * MS + round(wire + (3 * RESPONSE + PAUSE) * 1e9)


def test_an_answer_that_comes_too_late_is_not_one_to_the_next_request():
    late, right = codec.answer(FIRST, (1, 1)), codec.answer(FIRST, (2, 2))
    made, link = line({FIRST: [(60 * MS, late)]})
    made.send(codec.encode(FIRST), 0)
    assert made.receive(70 * MS) is None
    link.answers[codec.encode(FIRST)] = [(2 * MS, right)]
    made.send(codec.encode(FIRST), 0)
    assert made.receive(200 * MS) == right


def test_a_deadline_is_kept_while_an_answer_is_awaited():
    made, link = line({FIRST: [(9 * MS, codec.answer(FIRST, (1, 2)))]})
    made.send(codec.encode(FIRST), 0)
    assert made.receive(4 * MS) is None and link.t_ns == 4 * MS
    assert made.receive(20 * MS) is not None and link.t_ns == 9 * MS


def test_an_answer_in_pieces_with_damage_before_it():
    answer = codec.answer(FIRST, (1, 2))
    made, _ = line({FIRST: [(1 * MS, b"\xff\x01\x03"), (2 * MS, answer[:4]), (3 * MS, answer[4:])]})
    made.send(codec.encode(FIRST), 0)
    assert made.receive(20 * MS) == answer


def test_the_echo_of_an_adapter_is_no_answer():
    """The answer to function 6 is the request itself."""
    frame = codec.encode(ONE)
    read = codec.encode(FIRST)
    made, link = line({FIRST: [(1, read), (2 * MS, codec.answer(FIRST, (1, 2)))], ONE: [(1, frame), (3 * MS, frame)]})
    made.send(read, 0)
    assert made.receive(20 * MS) == codec.answer(FIRST, (1, 2))
    made.send(frame, 0)
    begun = link.t_ns
    assert made.receive(40 * MS) == frame
    assert link.t_ns >= begun + 3 * MS


def test_an_interrupted_link_is_free_when_the_answer_must_have_ended():
    made, link = line({})
    made.send(both(), 0)
    made.interrupt()
    made.send(codec.encode(ONE), 0)
    assert [item for _, item in link.sent] == [codec.encode(FIRST), codec.encode(ONE)] and not made.pending


def test_a_request_that_waits_already_is_not_sent_twice():
    made, link = line({FIRST: [(MS, codec.answer(FIRST, (1, 2)))], SECOND: [(MS, codec.answer(SECOND, (1, 2)))]})
    for _ in range(3):
        made.send(both(), 0)
    for _ in range(3):
        made.receive(100 * MS)
    assert [item for _, item in link.sent].count(codec.encode(SECOND)) == 1


def test_pauses_and_the_load_that_they_make():
    """MODBUS over Serial Line V1.02, 2.5.1.1"""
    assert silence(9600) == pytest.approx(3.5 * 11 / 9600)
    assert silence(19200) == pytest.approx(2.005e-3, rel=1e-3)
    assert silence(115200) == silence(1e6) == 1.75e-3
    # the bus load has the pauses of every exchange
    traffic = Exchanges([bytes(20), bytes(30)], [bytes(10), bytes(20), bytes(20)], 6e-3)
    assert traffic.load(SerialParams("tty", 100_000.0), 50e-3) == pytest.approx((10e-3 + 3 * 6e-3) / 50e-3)
