"""FMUs in a process of their own: the same results, and errors where an FMU hangs or crashes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from cosim.core.errors import InputError, RunError
from cosim.simulation.fmi import FmuPart
from tests.fmi import fmus
from tests.kit.refusals import raised

pytestmark = fmus.needs_gcc


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path()


@pytest.fixture
def scratch(folder, monkeypatch) -> Path:
    """Where files of processes are kept; the compiler's are elsewhere."""
    for model in (("linear", 3), ("ball", 3), ("faulty", 2)):
        fmus.library(*model)
    scratch = folder.absolute() / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    return scratch


def nothing_is_left(scratch: Path, number: int | None) -> None:
    """Of a process that has ended."""
    assert number is not None and not list(scratch.iterdir())
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def steps(part: FmuPart, n: int) -> list[dict[str, np.ndarray]]:
    return [part.step(0.2 * i, 0.2, {}) for i in range(n)]


@pytest.mark.parametrize(("model", "interface"), (("linear", "co-simulation"), ("ball", "model exchange")))
def test_a_process_gives_what_the_fmu_gives_in_the_run(folder, scratch, model, interface):
    path = fmus.build(folder, model, 3)
    results = []
    for process in (False, True):
        part = FmuPart(path, interface=interface, process=process)
        inputs = {name: np.full((2, *signal.shape), 0.3) for name, signal in part.inputs.items()}
        described = (part.inputs, part.outputs, part.feedthrough, part.order, part.repeats, part.variable)
        first = part.start(0.0, {name: c[0] for name, c in inputs.items()})
        saved = part.save()
        second = part.step(0.0, 0.5, inputs)
        part.restore(saved)
        third = part.step(0.0, 0.5, inputs)
        del saved
        fourth = part.step(0.5, 0.5, inputs)
        number = part.process_number
        assert not process or list(scratch.iterdir())
        part.close()
        part.close()
        assert all(np.array_equal(second[name], third[name]) for name in second)
        results.append((described, [{n: y.tolist() for n, y in row.items()} for row in (first, second, fourth)]))
    assert results[0] == results[1]
    nothing_is_left(scratch, number)


HANGS = 4


@pytest.mark.parametrize("fault", [2, 5, 9, HANGS])
def test_an_fmu_that_fails_ends_the_part_and_not_the_run(folder, scratch, fault, said):
    part = FmuPart(fmus.build(folder, "faulty", 2), "arm", {"fault": fault}, limit=60.0)
    part.start(0.0, {})
    number = part.process_number
    steps(part, 2)
    if fault == HANGS:  # the step that hangs, alone: others may take long on a busy machine
        part._part._limit = 0.2
    error = raised(RunError, part.step, 0.4, 0.2, {})
    part.close()
    said(error)
    with pytest.raises(RunError):
        part.step(0.6, 0.2, {})
    nothing_is_left(scratch, number)


def test_mistakes_are_found_before_the_start(folder):
    with pytest.raises(InputError, match=r"^ball2.fmu arm.mass: there is no such parameter; known: h, v, g, e$"):
        FmuPart(fmus.build(folder, "ball", 2), "arm", {"mass": 1.0})


def test_the_process_ends_when_the_run_has_ended_before_it_could_look():
    connection, theirs = socket.socketpair()
    command = [
        sys.executable,
        "-P",
        "-m",
        "cosim.simulation.fmi.fmu_process",
        str(theirs.fileno()),
        "1",
    ]  # not its parent
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    with connection, theirs:
        assert subprocess.run(command, pass_fds=[theirs.fileno()], env=environment, timeout=60).returncode == 1


def test_an_fmu_that_hangs_ends_with_the_run(folder):
    """The process of the run is killed while its FMU hangs."""
    import signal

    path = fmus.build(folder, "faulty", 2).absolute()
    code = (
        "from cosim.simulation.fmi import FmuPart\n"
        f"part = FmuPart({str(path)!r}, parameters={{'fault': 4}}, limit=600.0)\n"
        "part.start(0.0, {})\n"
        "print(part.process_number, flush=True)\n"
        "part.step(0.0, 1.0, {})\n"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    run = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment)
    assert run.stdout is not None
    number = int(run.stdout.readline())
    run.send_signal(signal.SIGKILL)
    run.wait()
    run.stdout.close()
    deadline = time.monotonic() + 60.0
    while Path(f"/proc/{number}").exists() and time.monotonic() < deadline:
        if Path(f"/proc/{number}/stat").read_text().split()[2] == "Z":
            break
        time.sleep(0.05)
    else:
        assert not Path(f"/proc/{number}").exists()
