"""The command `cosim drives scan`: its connection, its messages, and what it leaves out."""

import subprocess
import sys

import pytest

from cosim.apps.commissioning import scan_command as scanning
from cosim.apps.commissioning.scan_command import FamilyReport, connection_of, drivers_text, report_lines
from cosim.plugins.drivers.common.search import FoundDrive, Question
from cosim.plugins.drivers.transport import CanFrame
from tests.kit.connection import FakeConnection


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (("can0", None), ("bus", {"interface": "socketcan", "channel": "can0"})),
        ((None, "/dev/ttyUSB0"), ("port", {"port": "/dev/ttyUSB0"})),
        (
            ("interface: slcan, channel: /dev/ttyACM0, bitrate: 500 kbit/s", None),
            ("bus", {"interface": "slcan", "channel": "/dev/ttyACM0", "bitrate": "500 kbit/s"}),
        ),
    ],
)
def test_a_connection_is_a_name_or_its_keys(given, expected):
    assert connection_of(*given) == expected


WRONG = {
    "neither": [],
    "both": ["--bus", "can0", "--port", "x"],
    "key": ["--bus", "interface: virtual, chanel: x"],
    "family": ["--bus", "can0", "--family", "moteos"],
    "family without port": ["--port", "x", "--family", "template"],
    "classic CAN": ["--bus", "can0", "--family", "moteus"],
    "no port": ["--port", "/dev/none", "--family", "dynamixel"],
}


@pytest.mark.parametrize("words", WRONG.values(), ids=WRONG)
def test_bad_input_is_one_line(words, command, said):
    (line,) = command.refuses("drives", "scan", *words)
    said(line, r"(?<='/dev/none').*")  # the ports that there are


class Recorded(FakeConnection):
    """A connection without drives that keeps what is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list = []

    def send(self, item, deadline_ns: int) -> None:
        self.sent.append(item)

    def receive(self, deadline_ns: int):
        self.t_ns = deadline_ns
        return None


def test_questions_that_another_drive_takes_for_commands_are_not_sent():
    frames = (CanFrame(0x181, b"1"), CanFrame(0x182, b"1"), CanFrame(0x181, b"", remote=True))

    def search():
        assert (yield Question(frames, 0.1)) == []
        return []

    link, withheld = Recorded(), []
    scanning._ask(link, search(), {0x181}, withheld)
    assert link.sent == [frames[1], frames[2]]
    assert withheld == [0x181]


def test_the_report_has_a_line_for_each_family_and_drive(said):
    drives = [FoundDrive({"id": 3, "model": "X"}, "firmware 45"), FoundDrive({}, "id 9: model 7 is unknown")]
    reports = [
        FamilyReport("b", {}, skipped="has no 'port'"),
        FamilyReport("d", {"port": "/dev/x", "baudrate": 57600.0}, drives, withheld=[1, 2]),
        FamilyReport("e", {}),
    ]
    said(report_lines(reports))
    said(drivers_text(reports, "port", "found"))


def test_a_bus_in_use_by_a_program_of_this_machine_is_refused(command, said):
    bus = "interface: udp_multicast, channel: 239.71.22.101, fd: true"
    holder = [
        "import sys",
        "from cosim.plugins.drivers.transport import CanBus, CanParams",
        "CanBus(CanParams(interface='udp_multicast', channel='239.71.22.101', fd=True), lambda *k: None).open()",
        "print('open', flush=True)",
        "sys.stdin.read()",
    ]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", "\n".join(holder)], **pipes) as other:
        assert other.stdout.readline() == "open\n"
        (line,) = command.refuses("drives", "scan", "--bus", bus, "--family", "moteus")
        other.stdin.close()
    said(line, r"process \S+( \(.*?\))?")


def test_numbers_are_written_short_and_addresses_whole():
    section = {"interface": "udp_multicast", "channel": "239.12.36.0", "bitrate": 500000.0, "fd": True}
    assert scanning._flow(section) == "{interface: udp_multicast, channel: 239.12.36.0, bitrate: 500000, fd: true}"
