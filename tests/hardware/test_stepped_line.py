"""Lines in memory on a simulated time: items arrive at once, time passes only while the host waits."""

from types import SimpleNamespace

import pytest

from cosim.core.errors import RunError
from cosim.execution.hardware.emulation.stepped_line import BUS_OFF, NOT_OPEN, START_NS, SimulatedTime, SteppedLine
from cosim.plugins.drivers.transport import CanFrame
from cosim.plugins.drivers.transport.can import BUS_OFF_MESSAGE
from cosim.plugins.drivers.transport.connection import NOT_OPEN as NOT_OPEN_MESSAGE
from tests.kit.clock import MS


class Server:
    """Steps every ms; `answers`: (step, item) that the device sends in that step."""

    def __init__(self, time):
        self.due_ns, self.taken, self.answers = time.t_ns, 0, {}

    def advance_once(self):
        if self.taken in self.answers:
            self.device.send(self.answers[self.taken], 0)
        self.taken, self.due_ns = self.taken + 1, self.due_ns + MS


@pytest.fixture
def made():
    time = SimulatedTime()
    line = SteppedLine("line", time, can=True)
    time.server = server = Server(time)
    server.device = line.device
    for end in line.ends:
        end.open()
    return SimpleNamespace(time=time, line=line, server=server, host=line.host, device=line.device)


def frame(id, data=b"x"):
    return CanFrame(id, data)


def test_an_item_arrives_at_once_and_is_answered_at_once(made):
    got = []
    made.device.arrived = lambda: (got.append(made.device.receive(0)), made.device.send(frame(2), 0))
    made.host.send(frame(1), 0)
    assert [item.id for item in got] == [1]
    answer = made.host.receive(START_NS + 5 * MS)
    assert (answer.id, answer.t_ns, made.time.t_ns) == (2, START_NS, START_NS)
    assert (made.host.meter.items_out, made.host.meter.items_in) == (1, 1)


def test_time_passes_while_the_host_waits_step_by_step(made):
    made.server.answers = {3: frame(7)}
    answer = made.host.receive(START_NS + 10 * MS)
    assert (answer.id, answer.t_ns, made.server.taken) == (7, START_NS + 3 * MS, 4)
    assert made.host.receive(START_NS + 4 * MS + MS // 2) is None
    assert made.time.t_ns == START_NS + 4 * MS + MS // 2 and made.server.taken == 5
    assert made.host.receive(0) is None and made.device.receive(made.time.t_ns + MS) is None
    assert made.time.t_ns == START_NS + 4 * MS + MS // 2


def test_frames_for_other_nodes_are_not_received(made):
    made.host.accept({3})
    for id in (2, 3):
        made.device.send(frame(id), 0)
    assert made.host.receive(0).id == 3 and made.host.receive(0) is None


def test_bytes_are_passed_as_they_are(made):
    made.device.send(b"abc", 0)
    assert made.host.receive(0) == b"abc"


def test_a_bus_that_is_off_is_lost_with_the_message_of_a_real_one(made):
    made.device.bus_off()
    for call in (lambda: made.host.send(frame(1), 0), lambda: made.host.receive(0)):
        with pytest.raises(RunError, match=r"^line: bus off: "):
            call()
    assert made.host.lost and BUS_OFF == BUS_OFF_MESSAGE
    assert made.host.reopen() and not made.host.lost
    assert made.host.receive(0) is None


def test_a_serial_link_cannot_be_off():
    line = SteppedLine("line", SimulatedTime(), can=False)
    line.host.open()
    line.device.bus_off()
    assert not line.host.lost and line.host.receive(0) is None


def test_an_end_that_is_not_open_is_refused(made):
    made.host.close()
    with pytest.raises(RunError, match=r"^line: the connection is not open$"):
        made.host.receive(0)
    made.device.send(frame(1), 0)  # nobody listens
    assert NOT_OPEN == NOT_OPEN_MESSAGE and not made.host.reopen()


def test_what_attends_to_the_time_does_not_attend_to_itself(made):
    depth = []

    def attend():
        depth.append(made.time.t_ns)
        made.time.wait_until(made.time.t_ns + 2 * MS)

    made.time.attend = attend
    made.time.wait_until(START_NS + MS)
    assert depth == [START_NS] and made.time.t_ns == START_NS + 2 * MS
