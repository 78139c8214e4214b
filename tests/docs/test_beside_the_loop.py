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
    """Beside a run; those of other commands end with their command."""
    commands = {
        "analysis",
        "bench",
        "cli",
        "commissioning",
        "dashboard",
        "deploy",
        "doctor",
        "fmu_export",
        "foxglove",
        "scenario",
    }
    starts = re.compile(r"subprocess\.Popen\(|threading\.Thread\(|os\.fork\(")
    files = [path for folder in ("cosim", "drivers") for path in (ROOT / folder).rglob("*.py")]
    modules = {path.relative_to(ROOT) for path in files if starts.search(path.read_text())}
    assert {str(module) for module in modules if module.parts[1] not in commands} == KNOWN


# module -> row of the page
KNOWN = {
    "cosim/client/control.py",  # heartbeat of a client
    "cosim/compile/compilation.py",  # compilers
    "cosim/coupling/time_limit.py",  # parts
    "cosim/execution/execution_mode.py",  # hold commands of a run that is not paced
    "cosim/federation/federate_process.py",  # federate
    "cosim/fmi/fmu_process.py",  # looks for the run
    "cosim/fmi/remote_instance.py",  # FMU
    "cosim/hardware/enabling.py",  # enabling
    "cosim/output/console.py",  # progress display
    "cosim/output/remote_sink.py",  # recorder, publisher
    "cosim/output/slow_code.py",  # names of slow code
    "cosim/remote/control_link.py",  # control socket
    "cosim/rig/federate_process.py",  # looks for the run
    "cosim/timing/daemon_executor.py",  # ticks
    "cosim/timing/watchdog.py",  # watchdog
}
