"""New processes: time to the first tick, of the imports, of compilation."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import numpy as np

from benchmarks.paired_timing import Budget, Samples
from benchmarks.peers import robot_file
from benchmarks.robots import CHECKOUT, SAMPLE_RIG, UR5, sample_rig
from benchmarks.rows import BenchCase, Measurement, Target
from cosim.core.errors import RunError

# the monotonic clock is one for all processes of a machine
FRAME = """
import sys, time
def mark():
    marks.append(time.monotonic_ns())
marks = [int(sys.argv[1])]
mark()
{body}
print(*marks)
"""

COMMAND = "from cosim.cli.main import main; main()"

# each statement is timed on its own; sys.argv[2] is the file
IMPORTS = "import cosim", "from cosim import Model, load_rig"
TICK = "from cosim import load_rig", "rig = load_rig(sys.argv[2])", "engine = rig.engine()", "engine.run(1)"
DYNAMICS = (
    "from cosim import Model",
    "model = Model.from_urdf(sys.argv[2])",
    "model.compiled('forward_dynamics')",
)


def fresh(statements: tuple[str, ...], file: Path, folder: Path) -> np.ndarray:
    """Seconds that a new process takes to come up, and then for each statement, with `folder` as its cache.

    Raises RunError with the last line of its output when it fails.
    """
    script = FRAME.format(body="\n".join(f"{statement}\nmark()" for statement in statements))
    root = CHECKOUT
    environment = os.environ | {"COSIM_CACHE_DIR": str(folder), "COSIM_INTERPRET": ""}
    command = [sys.executable, "-c", script, str(time.monotonic_ns()), str(file)]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        output = done.stderr.strip().splitlines() or ["no output"]
        raise RunError(f"a new process failed: {output[-1]}", str(file))
    return np.diff(np.array(done.stdout.split(), dtype=np.int64)) * 1e-9


@cache
def starts(statements: tuple[str, ...], file: Path, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Seconds per statement of first starts, with an empty cache, and of second ones; (count, statements + 1)
    each, the first column for the start of Python."""
    first, second = [], []
    for _ in range(count):
        with tempfile.TemporaryDirectory() as folder:
            first.append(fresh(statements, file, Path(folder)))
            second.append(fresh(statements, file, Path(folder)))
    return np.array(first), np.array(second)


def second_start(budget: Budget) -> Measurement:
    first, second = starts(TICK, sample_rig().resolve(), budget.starts)
    python, imports, rig, engine, tick = np.median(second, axis=0) * 1e3
    note = f"Python {python:.0f}, imports {imports:.0f}, rig {rig:.0f}, engine {engine + tick:.0f} ms"
    return Measurement(Samples(second.sum(axis=1), first.sum(axis=1)), note=note)


def cpu_time_of_run(file: Path, folder: Path) -> float:
    """Seconds of CPU that a new process and its own ones take for `cosim run` over 5 s, with `folder` as the cache.

    Raises RunError when it fails.
    """
    environment = os.environ | {"COSIM_CACHE_DIR": str(folder), "COSIM_INTERPRET": ""}
    command = [sys.executable, "-c", COMMAND, "run", str(file), "--duration", "5"]
    before = os.times()
    done = subprocess.run(command, cwd=CHECKOUT, env=environment, capture_output=True, check=False)
    if done.returncode:
        raise RunError("cosim run failed in a new process", str(file))
    after = os.times()
    return after.children_user - before.children_user + after.children_system - before.children_system


def second_command(budget: Budget) -> Measurement:
    file, first, second = sample_rig().resolve(), [], []
    for _ in range(budget.starts):
        with tempfile.TemporaryDirectory() as folder:
            first.append(cpu_time_of_run(file, Path(folder)))
            second.append(cpu_time_of_run(file, Path(folder)))
    return Measurement(Samples(np.array(second), np.array(first)))


def stage(statements: tuple[str, ...], column: int, file: Callable[[], Path], budget: Budget) -> Measurement:
    """The statements from one on with an empty cache, against the same in a second process."""
    first, second = starts(statements, file().resolve(), budget.starts)
    return Measurement(Samples(first[:, column:].sum(axis=1), second[:, column:].sum(axis=1)))


def imports(budget: Budget) -> Measurement:
    with tempfile.TemporaryDirectory() as folder:
        rows = np.array([fresh(IMPORTS, Path(SAMPLE_RIG), Path(folder)) for _ in range(budget.starts + 1)])
    package, parts = rows[1:, 1], np.median(rows[1:, 2]) * 1e3
    return Measurement(Samples(package), note=f"what loads models and rigs {parts:.0f} ms more")


CACHED = "the same in a second start"

CASES = (
    BenchCase(
        "second start",
        "new process to first tick of ur5_sim, with the inputs of an earlier one",
        second_start,
        "first start, empty cache",
        unit="s",
        target=Target("ours", 2.0, at_most=True),
    ),
    BenchCase(
        "second command",
        "CPU time of cosim run ur5_sim over 5 s, with the inputs of an earlier run",
        second_command,
        "first start, empty cache",
        unit="s",
        target=Target("ours", 0.3, at_most=True),
    ),
    BenchCase(
        "import cosim",
        "import cosim in a new process",
        imports,
        unit="ms",
        target=Target("ours", 100.0, at_most=True),
    ),
    BenchCase(
        "compile tick",
        "ur5_sim: trace, compile, link the tick",
        partial(stage, TICK, 3, sample_rig),
        CACHED,
        "s",
    ),
    BenchCase(
        "compile forward_dynamics",
        "UR5: trace, compile, link forward_dynamics",
        partial(stage, DYNAMICS, 3, partial(robot_file, UR5)),
        CACHED,
        "s",
    ),
)
