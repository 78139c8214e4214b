"""A new limit is one row of the table: a rig with it is read, described, guarded, stopped and reported."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cosim.control import limits
from tests.kit.rigs import controller

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
# the command line with this table: reads argument lists and prints [exit code, stdout, stderr] of each
MAIN = """
import importlib.abc, importlib.util, io, json, sys
from contextlib import redirect_stderr, redirect_stdout

class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        return importlib.util.spec_from_loader(name, self) if name == "cosim.control.limits" else None

    def exec_module(self, module):
        exec(compile(open("limits.py").read(), "limits.py", "exec"), vars(module))

sys.meta_path.insert(0, Finder())
from cosim.cli.main import main
done = []
for arguments in json.load(sys.stdin):
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        sys.argv, code = ["cosim", *arguments], 0
        try:
            main()
        except SystemExit as leave:
            code = leave.code
    done.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(done))
"""
# 1 kg at 1 m/s on a rail, braked with 5 N: 5 W at the start
RIG = """
mechanism: {gravity: [0, 0, 0], bodies: [{name: a, type: prismatic, axis: [1, 0, 0], mass: 1 kg}]}
joints: {a: {initial: {velocity: 1}, limits: {regeneration: 4 W}}}
controllers: [{type: brake.py, joints: [a]}]
schedule: {duration: 200 ms, step: 1 ms}
"""
COMMANDS = {
    "stop": ("run", "rig.yaml"),
    "controlled stop": ("run", "rig.yaml", "--set", "guard.deceleration=50"),
    "warn": ("run", "rig.yaml", "--set", "guard.actions.regeneration=warn", "--json", "summary.json"),
    "no action": ("check", "rig.yaml", "--set", "guard.actions.regeneration=saturate"),
    "below 0": ("check", "rig.yaml", "--set", "joints.a.limits.regeneration=-1 kW"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rig")


@pytest.fixture(scope="module")
def done(folder: Path) -> dict[str, list]:
    """[exit code, stdout, stderr] of each command, with the row before the first limit of stop category 0."""
    source, mark = Path(limits.__file__).read_text(encoding="utf-8"), '    GuardLimit(\n        "tracking",'
    assert source.count(mark) == 1
    (folder / "limits.py").write_text(source.replace(mark, ROW + mark))
    (folder / "rig.yaml").write_text(RIG)
    (folder / "brake.py").write_text(controller("effort = ops.zeros(1) - 5.0"))
    command, given = [sys.executable, "-c", MAIN], json.dumps([*COMMANDS.values()])
    process = subprocess.run(command, cwd=folder, input=given, capture_output=True, text=True, timeout=300)
    assert process.returncode == 0, process.stderr
    return dict(zip(COMMANDS, json.loads(process.stdout), strict=True))


def test_it_stops_a_run_in_the_stop_category_of_its_row_with_its_reason(done, said):
    for kind in ("stop", "controlled stop"):
        code, _, err = done[kind]
        assert code == 1
        said(err)


def test_it_warns_with_its_alarm(done, folder):
    code, out, err = done["warn"]
    assert code == 0, err
    alarm = "a: returned power beyond its limit of 4 W (warned)"
    count = json.loads((folder / "summary.json").read_text())["guard"]["a"]["regeneration"]
    # 5 W falls to 4 W after 0.2 m/s, at 5 m/s²
    assert count == {"what": alarm, "ticks": pytest.approx(40, abs=1), "occurrences": 1, "first_s": 0.0}
    assert any(line.startswith(f"guard    {alarm}, in ") for line in out.splitlines())


def test_its_keys_are_checked(done, said):
    for kind in ("no action", "below 0"):
        code, _, err = done[kind]
        assert code == 2
        said(err)
