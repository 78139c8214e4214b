"""Files, rigs and recordings with names that a terminal would obey, that forge lines, or that are very long."""

import dataclasses
import math
from pathlib import Path

import pytest

from cosim import load_run, open_recording
from cosim.core.errors import LONGEST_WORD, InputError
from cosim.output.events import RunEvent
from tests.kit.refusals import raised

ODD = "\x1b[2J\u202e"
SHOWN = "\\u001b[2J\\u202e"
URDF = """\
<robot name="ro&#10;bot">
  <link name="base"/>
  <link name="{link}">
    <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <joint name="{joint}" type="continuous"><parent link="base"/><child link="{link}"/></joint>
</robot>
"""


def test_names_of_files_are_escaped(command):
    assert command("run", "rig.yaml", "--record", f"{ODD}.mcap")[1].endswith(f"wrote    recording {SHOWN}.mcap\n")
    for words, end in {
        ("explain", f"{ODD}.mcap"): "swing: the run ended without a stop at t = 0.4 s\n",
        ("compare", f"{ODD}.mcap", f"{ODD}.mcap"): "the runs are equal, to the bit\n",
        ("export", "recording", f"{ODD}.mcap", "--to", "csv"): f"wrote    {SHOWN}.csv: 401 ticks, 14 signals\n",
    }.items():
        code, out, err = command(*words)
        assert (code, err) == (0, []) and out.endswith(end)
        assert all(line.isprintable() for line in out.splitlines())


def test_a_run_with_a_name_that_forges_lines_is_refused(recorded):
    run, file = load_run("half.npz"), "a.npz"
    first, *others = run.units
    units = {name: run.units[name] for name in others}
    names = {
        "rig": {"name": "a\nequal"},
        "joint": {"roles": {"a\nequal": "passive"}},
        "signal": {"units": {"a\nequal": "rad", **units}},
        "unit": {"units": {first: "a\nequal", **units}},
        "parameter": {"parameters": {"a\nequal": 1.0}},
        "constraint": {"constraints": {"a\nequal": {"rows": [], "drifts": []}}},
    }
    for kind, fields in names.items():
        dataclasses.replace(run, rig=dataclasses.replace(run.rig, **fields)).save(file)
        refused = raised(InputError, load_run, file)
        what = f"the name of a {kind} must be one line of printable characters, is 'a\\nequal'; rename it"
        assert str(refused) == f"{file}: {what}"


def test_a_recording_that_was_saved_as_a_run_has_the_same_summary(recorded):
    """What a recording does not know is NaN, which JSON has not."""
    run = open_recording("a.mcap")
    dataclasses.replace(run, events=(RunEvent(0.1, "b", math.nan),)).save("b.npz")
    saved = load_run("b.npz")
    assert saved.summary | {"events": []} == run.summary | {"events": []} and math.isnan(saved.events[0].lost)


def test_events_of_a_run_are_one_line_each(recorded):
    dataclasses.replace(load_run("half.npz"), fault="a\nb").save("a.npz")
    assert load_run("a.npz").fault == "a\\nb"


def test_names_of_a_robot_file_are_one_line_each(command, said):
    Path("a.urdf").write_text(URDF.format(link=f"l{ODD[-1]}", joint="j&#10;x"))
    Path("rig.yaml").write_text("mechanism: {urdf: a.urdf}\n")
    said(command.refuses("check", "rig.yaml"))
    Path("a.urdf").write_text(URDF.format(link="l", joint="j"))
    assert "mechanism ro\\nbot: 1 joint" in command("check", "rig.yaml")[1]


LONG = ["run rig.yaml --record LONG.mcap", "run rig.yaml --json LONG.json", "run LONG.yaml", "check LONG", "key LONG"]
LONG += ["explain LONG.mcap", "replay LONG.mcap --rerun", "plot LONG.mcap", "export LONG.mcap --to csv", "LONG"]
LONG += ["new LONG.yaml a.urdf", "new a.yaml LONG.urdf", "scenario LONG.yaml"]


@pytest.mark.parametrize("words", LONG)
def test_a_long_name_is_wrong_input_and_shown_in_short(command, words):
    (line,) = command.refuses(*words.replace("LONG", 5000 * "n").split())
    assert "nnn" in line and len(line) < LONGEST_WORD + 300
