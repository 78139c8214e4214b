"""`cosim run --record-bus` and `cosim replay --bus`: what is printed, and options that are refused."""

from __future__ import annotations

import re

import pytest

from cosim.cli.replay import limits_of, shown_item
from cosim.execution.hardware.traffic.player import PlayedTraffic
from cosim.execution.hardware.traffic.traffic_log import MissingEntries
from cosim.output.traffic_messages import BusChannel
from cosim.plugins.drivers.transport import CanFrame
from cosim.rig.bus_replay import ReplayedBus
from tests.rig.test_bus_recording import RIG, recorded, rig_of

assert recorded  # a fixture


def test_drivers_that_do_the_same(recorded, command):
    folder, _ = recorded
    out = command.prints("replay", "--bus", folder / "run.mcap")
    heading, _, moteus, dynamixel, end = out.splitlines()
    assert heading.split() == ["driver", "connection", "calls", "sent", "received", "states", "differ"]
    assert re.fullmatch(rf"moteus +virtual recorded {folder} +\d+ +\d+ +\d+ +\d+ +0", moteus)
    assert re.fullmatch(rf"dynamixel +{folder}/port +\d+ +\d+ +\d+ +\d+ +0", dynamixel)
    assert end == "equal    every item that was sent and every state that was measured, to the bit"


def test_a_log_for_other_programs(recorded, command, tmp_path):
    path = tmp_path / "bus.log"
    code, out, err = command("replay", "--bus", recorded[0] / "run.mcap", "--to", path)
    frames = len(path.read_text().splitlines())
    said = f"wrote    {path}: {frames:,} frames; 'dynamixel' is on a serial port"
    assert (code, err, out.splitlines()) == (0, [], [said]) and frames > 60


def test_a_driver_that_does_something_else(recorded, command, tmp_path):
    folder, _ = recorded
    changed = rig_of(tmp_path, RIG.replace("c: {id: 2}", "c: {id: 2, direction: -1}"))
    code, out, err = command("replay", folder / "run.mcap", changed, "--bus")
    _, _, moteus, dynamixel, differs, was, now, *_ = out.splitlines()
    assert code == 1 and int(moteus.split()[-1]) > 5 and dynamixel.split()[-1] == "0"
    assert re.fullmatch(r"differs  moteus, joint 'c' at t = -?\d+\.\d{6} s: in \w+ it \w+.*", differs)
    assert was.startswith("         recorded  ") and now.startswith("         now       ")
    assert was.split(maxsplit=1)[1] != now.split(maxsplit=1)[1]
    where = r"[\d,]+ calls of drivers differ, the first at t = -?\d+\.\d{6} s"
    fix = "see what changed in the driver or in the rig since the recording"
    assert re.fullmatch(rf"{folder}/run\.mcap: {where}; {fix}", *err)


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (CanFrame(0x12, b"\x01\xab"), "012 [2] 01 ab"),
        (CanFrame(0x8001, b"\x01", True, True, True), "00008001 FD BRS [1] 01"),
        (CanFrame(0x701, b"", remote=True), "701 remote [0]"),
        (b"can send 01\r\n", r"'can send 01\r\n'"),
        (b"\xff\xff\xfd\x00", "ff ff fd 00"),
        (b"a\x01", "61 01"),
    ],
)
def test_items_as_text(item, text):
    assert shown_item(item).rstrip() == text


def test_what_could_not_be_compared():
    bus = BusChannel("arm", "moteus", "can0", ("a",), True)
    missing = PlayedTraffic(calls=3, mixed=2, missing=MissingEntries(None, 1_500_000_000))
    assert limits_of(ReplayedBus(bus, missing)) == [
        "2 calls of 'arm' from two threads could not be compared, as when a watchdog stops the motors",
        "the traffic of 'arm' is not complete after t = 1.500000 s; what follows was not compared",
    ]
    assert limits_of(ReplayedBus(bus, PlayedTraffic(calls=3))) == []
