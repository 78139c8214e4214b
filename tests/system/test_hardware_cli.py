"""The command line with real drives on a bus: `cosim run` in one process, `cosim emulate` in another."""

import itertools
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
import zlib
from contextlib import contextmanager, suppress
from pathlib import Path

import can
import pytest
import yaml

from tests.kit.emulated import emulated as emulated_here
from tests.kit.recordings import recorded_messages

RIGS = Path(__file__).parents[2] / "rigs"
PATIENCE = 60.0  # s; what takes so long has failed
# a machine that stalls for a while stops no run, and an arm without gravity stays where it is left
# emulated drives stall with the machine: their velocity goes on while their position stands
EASY = ["guard.stale=0.5", "guard.watchdog=3", "mechanism.gravity=[0, 0, 0]", "joints.all.limits.units=100"]
SHORT = "0.3"  # s; nothing moves yet
WE = 5  # address of the tests on the bus; `cosim run` has 0
_numbers = itertools.count()


def sets(*overrides):
    return [word for override in overrides for word in ("--set", override)]


def lines_of(names, channels):
    """Overrides that give each driver a bus that no other test uses."""
    return [
        word
        for name, channel in zip(names, channels, strict=True)
        for word in (f"drivers.{name}.bus.channel={channel}", f"drivers.{name}.watchdog=2")
    ]


def channels(n):
    """Multicast addresses that no other test uses at the moment, in this process or another."""
    found = []
    for _ in range(n):
        number = zlib.crc32(f"cli {os.getpid()} {next(_numbers)}".encode())
        found.append(f"239.{number & 127}.{number >> 8 & 255}.{number >> 16 & 255}")
    return found


def start(*arguments, stdin=subprocess.DEVNULL):
    """The command in a process that hears SIGINT, whatever started the tests."""
    return subprocess.Popen(
        [sys.executable, "-m", "cosim", *map(str, arguments)],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1", "COSIM_INTERPRET": "0"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def until(process, word):
    """The lines of stdout up to the one that begins with a word."""
    found = []
    for line in process.stdout:
        found.append(line.rstrip("\n"))
        if line.startswith(word):
            return found
    raise AssertionError(f"'{word}' was not said: {found}, {process.stderr.read()}")


def ended(process):
    """(exit code, lines of stdout, lines of stderr)."""
    out, err = process.communicate(timeout=PATIENCE)
    assert "Traceback" not in out + err, err
    return process.returncode, out.splitlines(), err.splitlines()


@contextmanager
def emulated(rig, *arguments):
    """(process, what it said); it is ended in order."""
    process = start("emulate", RIGS / f"{rig}.yaml", *arguments)
    try:
        yield process, until(process, "emulating")
        process.send_signal(signal.SIGINT)
        code, out, err = ended(process)
        assert (code, err) == (0, [])
        assert any(re.match(r"emulated \S+ s", line) for line in out)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        process.communicate()


class Arm:
    """`arm_can.yaml` behind emulated drives, for several runs."""

    def __init__(self, words, channel):
        self.words, self.channel = words, channel

    def start(self, *arguments, **keys):
        more = sets("guard.deceleration=20", "controllers.arm.trajectory.delay=0")
        return start("run", RIGS / "arm_can.yaml", *self.words, *more, "--duration", "100", *arguments, **keys)

    def modes(self):
        """Modes reported by the drives: 0 is stopped, 10 follows positions and efforts."""
        return {node: answer[0] for node, answer in self._ask(b"\x11\x00", b"\x21\x00").items()}

    def positions(self):
        """Of the drives, in 1e-4 turns."""
        found = self._ask(b"\x15\x01", b"\x25\x01")
        return {node: int.from_bytes(answer[:2], "little", signed=True) for node, answer in found.items()}

    def _ask(self, question, head):
        """What comes after the head of the answers."""
        found = {}
        with can.Bus(interface="udp_multicast", channel=self.channel, fd=True, hop_limit=0) as bus:
            for node in (1, 2, 3):
                query = can.Message(
                    arbitration_id=0x8000 | WE << 8 | node, data=question, is_fd=True, is_extended_id=True
                )
                until = time.monotonic() + PATIENCE
                while node not in found and time.monotonic() < until:
                    bus.send(query)  # again: a question or its answer may be lost
                    answer = bus.recv(0.1)
                    if answer is not None and answer.arbitration_id == node << 8 | WE and answer.data[:2] == head:
                        found[node] = bytes(answer.data[2:])
        return found


STOPPED = {1: 0, 2: 0, 3: 0}


@pytest.fixture(scope="module")
def arm():
    (channel,) = channels(1)
    words = sets(*EASY, *lines_of(["moteus"], [channel]))
    with emulated("arm_can", *words) as (_, said):
        assert said == [
            "arm_can  A desktop arm of three geared drives follows waypoints under computed feedforward torque.",
            f"moteus: moteus on udp_multicast {channel}",
            "  node 1: base",
            "  node 2: shoulder",
            "  node 3: elbow",
            "emulating; stop with Ctrl-C",
        ]
        yield Arm(words, channel)


@contextmanager
def terminal():
    """(its own end, the end of a program)."""
    ours, theirs = os.openpty()
    try:
        yield ours, theirs
    finally:
        os.close(ours)
        os.close(theirs)


def until_question(process):
    """The output up to the question, which has no line end."""
    shown = b""
    while not shown.endswith(b"motors on: "):
        ready, _, _ = select.select([process.stdout], [], [], PATIENCE)
        assert ready, shown
        piece = os.read(process.stdout.fileno(), 4096)
        assert piece, shown
        shown += piece
    return shown.decode()


# --- other rigs, beside drives that are emulated in this process ---


def run_beside(command, device, rig, buses, *more, emulated=()):
    """(lines of stdout, summary) of a run; buses: driver -> its connection; emulated: settings of both sides."""
    connections = [f"drivers.{name}.{key}={value}" for name, (key, value) in buses.items()]
    words = sets(*connections, *(f"drivers.{name}.watchdog=2" for name in buses), "guard.stale=0.5", "guard.watchdog=3")
    with emulated_here(RIGS / f"{device}.yaml", *connections, *emulated):
        code, out, err = command("run", RIGS / f"{rig}.yaml", *words, *sets(*emulated), *more, "--yes", *WRITES)
    assert (code, err) == (0, [])
    return out.splitlines(), json.loads(Path("run.json").read_text())


WRITES = "--duration", SHORT, "--json", "run.json"


def virtual(name):
    rates = "fd: true, bitrate: 8 Mbit/s, data_bitrate: 8 Mbit/s"
    return "bus", f"{{interface: virtual, channel: {name} {next(_numbers)}, {rates}}}"


LIMITS = "effort 10 N·m, position -2.967 to 2.967 rad, velocity 8 rad/s"
LIMITS += "; by default commanded_effort 1e+04 N·m, tracking 0.2967 rad, stall 1 s, frozen 0.2967 rad, "
LIMITS += "units at the first motion within 1 × their tolerance"


def test_a_real_joint_beside_simulated_ones(command):
    bus = "bus", f"{{interface: virtual, channel: mixed {next(_numbers)}}}"
    out, summary = run_beside(command, "arm_mixed", "arm_mixed", {"odrive": bus})
    assert f"    node 3, elbow: {LIMITS}" in out
    assert [line["driver"] for line in summary["drivers"]] == ["odrive"]
    assert any(line.startswith("bus      odrive") for line in out)


def test_a_dynamometer(command):
    buses = {"test": virtual("test"), "load": virtual("load")}
    out, summary = run_beside(command, "dynamometer/bench", "dynamometer/elbow", buses)
    for key, name in (("real_joints", "drive of elbow"), ("load_motors", "load motor of elbow")):
        account = summary[key]["elbow"]
        assert account["effort"] == "reported"
        assert abs(account["residual"]) <= account["residual_max"] < 1.0  # nothing moves yet
        (line,) = (line for line in out if line.startswith(f"bond     {name}: "))
        assert re.fullmatch(rf"bond     {name}: residual energy \S+ J, at most \S+ J; power at most \S+ W", line)
    (line,) = (line for line in out if line.startswith("load "))
    adds = r"it adds \S+ kg·m² and \S+ N·m·s/rad to the load"
    assert re.fullmatch(rf"load     elbow: error RMS [^,]+, at most [^,]+, delay [^;]+; {adds}", line)
    assert f"    node 1, elbow: {LIMITS}" in out
    assert "    node 2, load of elbow: effort 8 N·m, position -2.967 to 2.967 rad, velocity 8 rad/s" in out
    assert [line.split()[1] for line in out if line.startswith("bus ")] == ["test", "load"]


def test_a_twin(command):
    limits, rests = sets("joints.elbow.limits.shadow_position=0.4 rad"), ["mechanism.gravity=[0, 0, 0]"]
    buses = {"moteus": virtual("twin")}
    out, summary = run_beside(command, "arm_can", "arm_can", buses, "--shadow", *limits, emulated=rests)
    assert any("shadow_position 0.4 rad" in line for line in out)
    assert list(summary["shadows"]) == ["base", "shoulder", "elbow"]
    assert set(summary["shadows"]["elbow"]) == {"effort_max", "drive_max", "position_max", "slip_max"}
    lines = [line for line in out if line.startswith("shadow ")]
    shown = r"shadow   base: at most effort .+ N·m, drive .+ N·m, position .+ m?rad, slip .+ m?rad"
    assert len(lines) == 3 and re.fullmatch(shown.replace(".+", "[^,]+"), lines[0].replace("mN", "N").replace("µ", "m"))


def test_a_dynamometer_with_a_board_of_lines_of_text_and_a_modbus_drive(command, tmp_path):
    buses = {name: ("port.port", str(tmp_path / name)) for name in ("test", "load")}
    _, summary = run_beside(command, "dynamometer/bench_modbus", "dynamometer/elbow_modbus", buses)
    drivers = summary["drivers"]
    assert [row["driver"] for row in drivers] == ["test", "load"]  # how many commands were unsent depends on the load
    assert 0.1 < drivers[0]["bus_load_estimated"] < 0.2 and 0.5 < drivers[1]["bus_load_estimated"] < 0.65


# --- simulation and hardware are one file -----------------------------------------------------------


def test_simulated_and_real_arm_differ_in_their_drivers_only():
    texts = [(RIGS / f"arm_{which}.yaml").read_text() for which in ("sim", "can")]
    simulated, real = map(yaml.safe_load, texts)
    assert simulated.pop("drivers") == [] and len(real.pop("drivers")) == 1
    assert simulated == real
    block = re.compile(r"^drivers:.*\n(?:[ ].*\n)*", re.MULTILINE)
    without = [block.sub("", text) for text in texts]
    assert without[0] == without[1] and all(len(block.findall(text)) == 1 for text in texts)


# --- in two processes ---


def test_nothing_moves_without_consent_and_then_a_run_reports_what_moved(arm, command, said, tmp_path):
    code, out, err = command("run", RIGS / "arm_can.yaml", *arm.words, "--duration", SHORT)
    assert code == 2 and out.startswith("arm_can moves real motors:\n")
    said(err)
    assert arm.modes() == STOPPED
    record, summary = tmp_path / "run.mcap", tmp_path / "run.json"
    with terminal() as (ours, theirs):
        process = arm.start("--record", record, "--json", summary, stdin=theirs)
        try:
            shown = until_question(process)
            assert arm.modes() == STOPPED
            os.write(ours, b"yes\n")
            until, before = time.monotonic() + PATIENCE, arm.positions()
            while abs(arm.positions()[1] - before[1]) < 20 or set(arm.modes().values()) != {10}:
                assert time.monotonic() < until and process.poll() is None, ended(process)
            process.send_signal(signal.SIGINT)
            code, out, err = ended(process)
        finally:
            process.kill()
            process.communicate()
    (message,) = err
    assert code == 1 and re.search(r"interrupted after tick \d+", message)
    way = (
        r"(?<=is at )\S+ rad; its reference begins at \S+ rad, .+; in all it goes from \S+ rad to \S+ rad, at up to .+"
    )
    said(shown, r"(?<=udp_multicast )\S+(?=,)", r"\d+(?=%)", re.escape(str(RIGS)), way)
    (line,) = (line for line in out if line.startswith("bus "))
    pattern = r"bus      moteus on \S+ \S+: [\d,]+ sent, [\d,]+ received, [\d,]+ errors; bus load [\d.]+%, .+"
    assert re.fullmatch(pattern, line)
    assert out[-1] == f"wrote    summary {summary}, recording {record}"
    found = json.loads(summary.read_text())
    (bus,) = found["drivers"]
    assert found["outcome"] in message and bus["driver"] == "moteus" and bus["received"] > 100
    names = {f"{message.topic[1:]}/{key}" for message in recorded_messages(record)[:20] for key in message.fields}
    assert {f"joints/{name}/age" for name in ("base", "shoulder", "elbow")} <= names
    assert arm.modes() == STOPPED


def test_a_run_that_ends_by_itself_leaves_the_drives_off(arm):
    code, out, err = ended(arm.start("--duration", SHORT, "--yes"))
    assert (code, err) == (0, []) and any(line.startswith("bus      moteus on ") for line in out)
    assert arm.modes() == STOPPED
