"""A soak: runs of an emulated six-axis arm with random faults, kills and stops, one after the other.

    python -m tests.kit.soak [--duration 3600] [--seed 0] [--only PATTERN] [--log soak.jsonl]

Each run has its own bus, and the controller of the rig or one in Python. After it, the motors must be off, nothing may
be left running or in shared memory, the recording must be readable, and the error must be one line with the right
cause. Prints what is not so and exits with 1. Kills of one run after the other: `tests.kit.kills`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import can
from mcap.exceptions import McapError
from mcap.stream_reader import StreamReader

from cosim.core.errors import RunError
from cosim.output.client import connect
from tests.kit.processes import child

RIG = Path(__file__).parents[2] / "rigs" / "bench" / "one_can_bus.yaml"
NODES = range(1, 7)
OUR_ID = 5  # address on the bus; `cosim run` has 0
ASKED = b"\x11\x00\x1d\x01"  # the mode, an int8, and the position, a float
OFF = {0, 1, 11, 15}  # modes of a moteus drive: stopped, fault, watchdog tripped (it damps), brake
WATCHDOG = 0.6  # s, of the drives
FEEDBACK = 0.4  # s, of guard.stale: longer than the stalls of a busy machine
PATIENCE = 60.0  # s
STALE = "has sent no feedback for"
BEFORE = "before the first command"  # a start that is refused: nothing is recorded
LOST = f"{STALE}|no answer from node"  # before or after the start


@dataclass(frozen=True)
class Scenario:
    """What happens to a run: a fault of the emulation ({t}: when, {joint}: where, {late}: up to FEEDBACK), or a signal
    to a process, `run`, `emulation` or one of HELPERS; the exit code of the run and a pattern of its error. finishes:
    the run may also end as if nothing had happened; held: a client holds control, whose loss stops the run; start: the
    range of positions [rad] at which one joint stands, without gravity; upper: limit of all joints in the run [rad]."""

    name: str
    error: str
    fault: str = ""
    signal: int = 0
    to: str = "run"
    code: int = 1
    finishes: bool = False
    held: bool = False
    start: tuple[float, float] = (0.0, 0.0)
    upper: float = 2.0


# processes that a run with stream, recording and control starts, each with its number within its module
HELPERS = {
    "publisher": ("cosim.output.sink_process", 0),
    "recorder": ("cosim.output.sink_process", 1),
    "control": ("cosim.execution.remote.control_process", 0),
}
LOST_CONTROL = "control by 'soak' was lost: the process of the control socket "
# a controller that stays in Python, with the parameters of the rig's
IN_PYTHON = """\
import numpy as np
from cosim.plugin import COMMAND, joint_signals, param, params

@params
class Params:
    kp: float = param(unit="N*m/rad", min=0)
    kd: float = param(unit="N*m*s/rad", min=0)

class Follow:
    def __init__(self, params, context):
        self.params, self.n = params, len(context.joints)
        self.inputs = joint_signals(("reference_position", "reference_velocity", "position"), self.n)
        self.outputs = joint_signals(COMMAND, self.n)

    def initial(self):
        return {}

    def update(self, t, p, x, u):
        assert all(np.isfinite(float(position)) for position in u["position"])  # which cannot be compiled
        every = np.ones(self.n)
        command = u["reference_position"], u["reference_velocity"], 0.0 * every, p.kp * every, p.kd * every
        return {}, dict(zip(COMMAND, command, strict=True))

def load(params, context):
    return Follow(params, context)
"""

SCENARIOS = (
    Scenario("undisturbed", "", code=0),
    Scenario("interrupt", r"interrupted after tick \d+", signal=signal.SIGINT),
    Scenario("terminate", r"(interrupted|terminated) after tick \d+", signal=signal.SIGTERM),
    Scenario("kill", "", signal=signal.SIGKILL, code=-signal.SIGKILL),
    Scenario("publisher killed", "", signal=signal.SIGKILL, to="publisher", code=0),
    Scenario("recorder killed", r"the recorder ended unexpectedly \(signal 9\)", signal=signal.SIGKILL, to="recorder"),
    Scenario("control killed", "", signal=signal.SIGKILL, to="control", code=0),
    Scenario("control killed, held", LOST_CONTROL + "has ended", signal=signal.SIGKILL, to="control", held=True),
    Scenario("control halted, held", LOST_CONTROL + "does not", signal=signal.SIGSTOP, to="control", held=True),
    Scenario("emulation killed", LOST, signal=signal.SIGKILL, to="emulation"),
    Scenario("emulation halted", LOST, signal=signal.SIGSTOP, to="emulation"),
    Scenario("bus off", r"connection is lost|bus off|" + STALE, fault="kind: bus_off, at: {t}"),
    Scenario("all frames lost", STALE, fault="kind: drop, at: {t}"),
    Scenario("some frames lost", STALE, fault="kind: drop, at: {t}, fraction: 0.05", finishes=True),
    Scenario("frames twice", "", fault="kind: duplicate, at: {t}, fraction: 0.2", code=0),
    Scenario("frames late", STALE, fault="kind: delay, at: {t}, delay: 1.0"),
    Scenario("answers late", STALE, fault="kind: late_answers, at: {t}, delay: 1.0"),
    Scenario("a pause within the limit", "", fault="kind: drop, at: {t}, duration: {late}", finishes=True),
    Scenario("frames late within the limit", "", fault="kind: delay, at: {t}, delay: {late}", finishes=True),
    Scenario("start elsewhere", "", code=0, start=(-1.8, 1.8)),
    Scenario("start beyond the limits", f"{BEFORE}, outside its limits", start=(0.6, 1.9), upper=0.5),
    Scenario("power loss", STALE + "|restarted|reports|mode", fault="kind: power_loss, at: {t}, duration: 1.0"),
    Scenario("encoder jump", "check its encoder", fault="kind: encoder_jump, joint: {joint}, at: {t}, size: 1.0"),
    Scenario("encoder frozen", "encoder", fault="kind: encoder_freeze, joint: {joint}, at: {t}"),
    Scenario("encoder without number", "encoder|not finite", fault="kind: encoder_nan, joint: {joint}, at: {t}"),
    Scenario(
        "velocity in another unit",
        r"reports a velocity|by its positions",
        fault="kind: velocity_unit, joint: {joint}, scale: 0.1047",
    ),
    Scenario("position in another unit", "position", fault="kind: position_unit, joint: {joint}, scale: 0.1592"),
    # a joint that exerts hardly any effort proves nothing
    Scenario("effort in another unit", "effort", fault="kind: effort_unit, joint: {joint}, scale: 9.0", finishes=True),
    Scenario("encoder noise", "encoder|moves at", fault="kind: encoder_noise, joint: {joint}, at: {t}, size: 0.5"),
    *(
        Scenario(
            f"motor fault: {cause}",
            f"the drive of joint '\\w+' reports .*{word}",
            fault=f"kind: motor_fault, joint: {{joint}}, cause: {cause}, at: {{t}}",
        )
        for cause, word in (
            ("overtemperature", "temperature"),
            ("overcurrent", "motor driver fault"),  # the drive has no code of its own
            ("undervoltage", "voltage"),
            ("encoder", "encoder"),
        )
    ),
)


@contextmanager
def process(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    """A command of cosim in its own session, which is killed at the end."""
    command = [sys.executable, "-m", "cosim", *map(str, arguments)]
    pipe = subprocess.PIPE
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, env=environment, start_new_session=True
    ) as started:
        try:
            yield started
        finally:
            for member in members(started.pid):
                os.kill(member, signal.SIGKILL)


def members(session: int) -> list[int]:
    """The living processes of a session."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(folder.name))
    return found


class DriveState(NamedTuple):
    """mode; position: turns of the motor."""

    mode: int
    position: float


def modes(channel: str) -> dict[int, int]:
    """Node -> mode that its drive reports."""
    return {node: state.mode for node, state in drives(channel).items()}


def drives(channel: str) -> dict[int, DriveState]:
    """Node -> what its drive reports."""
    found: dict[int, DriveState] = {}
    until = time.monotonic() + 5.0
    with can.Bus(interface="udp_multicast", channel=channel, fd=True, hop_limit=0) as bus:
        while len(found) < len(NODES) and time.monotonic() < until:
            for node in set(NODES) - set(found):
                id = 0x8000 | OUR_ID << 8 | node
                bus.send(can.Message(arbitration_id=id, data=ASKED, is_fd=True, is_extended_id=True))
                answer = bus.recv(0.05)
                while answer is not None and node not in found:
                    if answer.arbitration_id == node << 8 | OUR_ID and answer.data[:2] == b"\x21\x00":
                        found[node] = DriveState(answer.data[2], *struct.unpack_from("<f", answer.data, 5))
                    answer = bus.recv(0.0)
    return found


def messages_in(recording: Path) -> int:
    """Readable messages of a recording, which may have lost its end."""
    count = 0
    with recording.open("rb") as file:
        try:
            for record in StreamReader(file, emit_chunks=False).records:
                count += type(record).__name__ == "Message"
        except (McapError, EOFError, ValueError):
            if not count:
                raise
    return count


def soak_once(number: int, scenario: Scenario, dice: random.Random, folder: Path) -> dict[str, object]:
    """One run; the result with a list of what is wrong."""
    t, joint, wrong = dice.uniform(0.05, 4.0), f"joint{dice.choice(NODES)}", list[str]()
    channel = f"239.75.{number // 250 % 250}.{number % 250 + 1}"
    words = ["--set", f"drivers.bus1.bus.channel={channel}", "--set", f"drivers.bus1.watchdog={WATCHDOG}"]
    words += ["--set", f"guard.stale={FEEDBACK}", "--set", f"guard.watchdog={WATCHDOG}"]
    in_python = dice.random() < 0.5
    if in_python:
        (folder / "follow.py").write_text(IN_PYTHON)
        words += ["--set", f"controllers.arm.type={folder / 'follow.py'}"]
    late = dice.uniform(0.02, FEEDBACK)
    fault = scenario.fault.format(t=f"{t:.3f}", joint=joint, late=f"{late:.3f}")
    if fault:  # faults count from the first effort of a motor
        fault += ", when: {signal: joint1/effort, above: -1e9}"
    start = list[str]()
    if scenario.start[1]:
        words += ["--set", "mechanism.gravity=[0, 0, 0]"]
        start = ["--set", f"joints.{joint}.initial.position={dice.uniform(*scenario.start):.3f}"]
    recording = folder / f"run{number}.mcap"
    shared = set(os.listdir("/dev/shm"))
    with process("emulate", RIG, *words, *start, *(["--fault", fault] if fault else [])) as emulation:
        assert emulation.stdout is not None
        for line in emulation.stdout:
            if line.startswith("emulating"):
                break
        control = f"ipc://{folder}/control{number}"
        own = ["--telemetry", f"ipc://{folder}/stream{number}", "--control", control] if scenario.to in HELPERS else []
        own += ["--set", f"joints.all.limits.upper={scenario.upper}"]
        own += ["--set", "telemetry.control_lost=rest"] if scenario.held else []
        with (
            process("run", RIG, *words, *own, "--yes", "--duration", "5", "--record", recording) as run,
            holding(control) if scenario.held else nullcontext(),
        ):
            if scenario.signal:
                wait_for(recording, run)
                time.sleep(t if scenario.signal != signal.SIGSTOP or scenario.to != "control" else min(t, 1.0))
                helper = HELPERS.get(scenario.to)
                known = {"run": run.pid, "emulation": emulation.pid}
                os.kill(known[scenario.to] if helper is None else child(run.pid, *helper), scenario.signal)
            try:
                _, error = run.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                wrong.append("the run does not end")
                run.kill()
                _, error = run.communicate()
            if members(run.pid):
                time.sleep(2.0)
            if left := members(run.pid):
                wrong.append(f"{len(left)} processes of the run are left")
        if scenario.signal == signal.SIGSTOP:
            os.kill(emulation.pid, signal.SIGCONT)
        if emulation.poll() is None:
            time.sleep(2.0 * WATCHDOG)
            found = modes(channel)
            if len(found) == len(NODES) and not set(found.values()) <= OFF:
                wrong.append(f"motors are on: {found}")
    finished = run.returncode == 0 and not error and (scenario.finishes or scenario.code == 0)
    if not finished:
        if run.returncode != scenario.code:
            wrong.append(f"exit code {run.returncode}")
        if len(error.splitlines()) > 1 or "Traceback" in error:
            wrong.append("the error is not one line")
        if not re.search(scenario.error, error):
            wrong.append("another cause")
    try:
        if BEFORE not in error and not messages_in(recording):
            wrong.append("the recording is empty")
    except (OSError, McapError, EOFError, ValueError) as problem:
        wrong.append(f"the recording cannot be read: {problem!r}")
    recording.unlink(missing_ok=True)
    if left := set(os.listdir("/dev/shm")) - shared:
        wrong.append(f"left in shared memory: {sorted(left)}")
    told = {"controller": "Python" if in_python else "compiled", "error": error.strip(), "wrong": wrong}
    return {"run": number, "scenario": scenario.name, "t": round(t, 3), **told}


@contextmanager
def holding(control: str) -> Iterator[None]:
    """Hold control of the run, as soon as it serves its socket there."""
    with connect(control, "soak", timeout=PATIENCE) as client:
        client.take()
        client.timeout = 1.0
        ended = threading.Event()

        def beat() -> None:
            with suppress(RunError):  # the process of the socket has ended
                while not ended.wait(0.3):
                    client.request("heartbeat")

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def wait_for(recording: Path, run: subprocess.Popen[str]) -> None:
    """Until the run records: before, the command creates the empty file for a moment, to see that it can be written."""
    until = time.monotonic() + PATIENCE
    while not _size(recording) and run.poll() is None and time.monotonic() < until:
        time.sleep(0.01)


def _size(file: Path) -> int:
    """Bytes, 0 where there is no file."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def main(arguments: Sequence[str]) -> int:
    options = argparse.ArgumentParser(prog="python -m tests.kit.soak", description="Runs with random disturbances.")
    options.add_argument("--duration", type=float, default=3600.0, help="s")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--only", default="", help="pattern of the names of scenarios")
    options.add_argument("--log", type=Path, help="file for one line of JSON per run")
    given = options.parse_args(arguments)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a job in the background ignores, and its runs too
    dice, end, counts, bad = random.Random(given.seed), time.monotonic() + given.duration, Counter[str](), 0
    chosen = [scenario for scenario in SCENARIOS if re.search(given.only, scenario.name)]
    with tempfile.TemporaryDirectory() as folder:
        number = 0
        while time.monotonic() < end:
            for scenario in dice.sample(chosen, len(chosen)):
                result = soak_once(number, scenario, dice, Path(folder))
                number += 1
                counts[scenario.name] += 1
                if result["wrong"]:
                    bad += 1
                    print(json.dumps(result, ensure_ascii=False), flush=True)
                if given.log is not None:
                    with given.log.open("a") as log:
                        log.write(json.dumps(result, ensure_ascii=False) + "\n")
                if time.monotonic() >= end:
                    break
    print(f"{number} runs, {bad} with something wrong; {len(counts)} scenarios of {len(chosen)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
