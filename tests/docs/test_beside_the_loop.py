"""The page of what runs beside the loop: each of its rows has a test, which exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "beside-the-loop.md").read_text()


def test_every_test_that_the_page_names_exists():
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
    assert len(named) > 15
    missing = [f"{file}::{name}" for file, name in named if f"def {name}(" not in (ROOT / file).read_text()]
    assert not missing


def test_the_page_names_every_module_that_starts_a_process_or_a_thread():
    """Beside a run; with other commands they end with the command."""
    commands = {"apps", "cli"}
    starts = re.compile(r"subprocess\.Popen\(|threading\.Thread\(|os\.fork\(")
    files = [path for folder in ("cosim", "drivers") for path in (ROOT / folder).rglob("*.py")]
    modules = {path.relative_to(ROOT) for path in files if starts.search(path.read_text())}
    assert {str(module) for module in modules if module.parts[1] not in commands} == KNOWN


# module -> row of the page
KNOWN = {
    "cosim/output/client/control.py",  # heartbeat of a client
    "cosim/core/compile/compilation.py",  # compilers
    "cosim/simulation/coupling/time_limit.py",  # parts
    "cosim/execution/execution_mode.py",  # hold commands of a run that is not paced
    "cosim/simulation/federation/federation.py",  # federate
    "cosim/simulation/fmi/fmu_process.py",  # looks for the run
    "cosim/simulation/fmi/part.py",  # FMU
    "cosim/execution/hardware/enabling.py",  # enabling
    "cosim/output/console.py",  # progress display
    "cosim/output/remote_sink.py",  # recorder, publisher
    "cosim/output/slow_code.py",  # names of slow code
    "cosim/execution/remote/control_link.py",  # control socket
    "cosim/rig/federates.py",  # looks for the run
    "cosim/execution/timing/daemon_executor.py",  # ticks
    "cosim/execution/timing/watchdog.py",  # watchdog
}
