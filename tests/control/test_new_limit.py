"""A new limit is one row of the table: a rig with it is read, described, guarded, stopped and reported."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cosim.control import limits

# the regenerated power that a supply without brake resistor cannot take
ROW = """    GuardLimit(
        "regeneration",
        "W",
        meaning="greatest power returned to the supply",
        default_action=STOP,
        stop_category=1,
        exceeded=lambda x, saturates: -(x.judged_effort(saturates) * x.velocity) > x.bounds["regeneration"],
        reason="returns {power} ({effort} at {velocity}), above its limit of {limit}; brake more slowly",
        controlled_stop="returned more than its limit of {limit}",
        warning="returned power beyond its limit of {limit} (warned)",
    ),
"""
# the command line with this table
MAIN = """
import importlib.abc, importlib.util, sys

class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        return importlib.util.spec_from_loader(name, self) if name == "cosim.control.limits" else None

    def exec_module(self, module):
        exec(compile(open("limits.py").read(), "limits.py", "exec"), vars(module))

sys.meta_path.insert(0, Finder())
from cosim.cli.main import main
sys.exit(main())
"""
# 1 kg at 1 m/s on a rail, braked with 5 N: 5 W at the start
RIG = """
mechanism: {gravity: [0, 0, 0], bodies: [{name: a, type: prismatic, axis: [1, 0, 0], mass: 1 kg}]}
joints: {a: {initial: {velocity: 1}, limits: {regeneration: 4 W}}}
controllers: [{type: brake.py, joints: [a]}]
schedule: {duration: 200 ms, step: 1 ms}
"""
BRAKE = """
from cosim.types import COMMAND, FEEDBACK, joint_signals, params

@params
class Params:
    pass

class Brake:
    def __init__(self, params, context):
        self.params, self.inputs, self.outputs = params, joint_signals(FEEDBACK, 1), joint_signals(COMMAND, 1)

    def initial(self):
        return {}

    def update(self, t, p, x, u):
        zero = 0.0 * u["position"]
        return {}, {**dict.fromkeys(COMMAND, zero), "effort": zero - 5.0}

def load(params, context):
    return Brake(params, context)
"""


@pytest.fixture
def cosim(tmp_path: Path) -> Any:
    """cosim(*arguments) -> the finished process, with the row before the first limit of stop category 0."""
    source, mark = Path(limits.__file__).read_text(encoding="utf-8"), '    GuardLimit(\n        "tracking",'
    assert source.count(mark) == 1
    (tmp_path / "limits.py").write_text(source.replace(mark, ROW + mark))
    (tmp_path / "rig.yaml").write_text(RIG)
    (tmp_path / "brake.py").write_text(BRAKE)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", MAIN, *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)

    return run


def test_it_stops_a_run_with_its_reason(cosim):
    done = cosim("run", "rig.yaml")
    assert (done.returncode, done.stderr) == (
        1,
        "rig.yaml: stopped at tick 0 (t = 0 s): joint 'a' returns 5 W (-5 N at 1 m/s), above its limit of 4 W; brake"
        " more slowly\n",
    )


def test_its_stop_category_is_that_of_the_row(cosim):
    done = cosim("run", "rig.yaml", "--set", "guard.deceleration=50")
    assert done.returncode == 1
    assert "joint 'a' returned more than its limit of 4 W at t = 0 s, followed by a controlled stop" in done.stderr


def test_it_warns_with_its_alarm(cosim, tmp_path):
    done = cosim("run", "rig.yaml", "--set", "guard.actions.regeneration=warn", "--json", "summary.json")
    assert done.returncode == 0, done.stderr
    alarm = "a: returned power beyond its limit of 4 W (warned)"
    count = json.loads((tmp_path / "summary.json").read_text())["guard"]["a"]["regeneration"]
    # 5 W falls to 4 W after 0.2 m/s, at 5 m/s²
    assert count == {"what": alarm, "ticks": pytest.approx(40, abs=1), "occurrences": 1, "first_s": 0.0}
    assert any(line.startswith(f"guard    {alarm}, in ") for line in done.stdout.splitlines())


def test_its_keys_are_checked(cosim):
    done = cosim("check", "rig.yaml", "--set", "guard.actions.regeneration=saturate")
    message = "--set guard.actions.regeneration=saturate: expected one of warn, stop; got 'saturate'\n"
    assert (done.returncode, done.stderr) == (2, message)
    done = cosim("check", "rig.yaml", "--set", "joints.a.limits.regeneration=-1 kW")
    message = "--set joints.a.limits.regeneration=-1 kW: must be above 0 W, is -1000 W\n"
    assert (done.returncode, done.stderr) == (2, message)
