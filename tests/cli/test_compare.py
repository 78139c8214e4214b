"""`cosim compare`, `cosim --version`, and plots of chosen joints and signals."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

from cosim import open_recording


def recorded(command, name, *overrides):
    words = [word for override in overrides for word in ("--set", override)]
    code, _, err = command("run", "rig.yaml", "--record", name, *words)
    assert (code, err) == (0, [])


def test_two_recordings_are_compared(command):
    recorded(command, "a.mcap")
    recorded(command, "b.mcap", "controllers.hold.kp=25")
    code, out, err = command("compare", "a.mcap", "b.mcap")
    assert (code, err) == (0, [])
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[:2] == ["a a.mcap swing, 0.4 s", "b b.mcap swing, 0.4 s"]
    assert "parameters.hold.kp 50 25 0.5" in lines
    (joint,) = (line.split() for line in lines if line.startswith("hinge "))
    errors = [float(joint[1]), float(joint[2])]
    assert float(joint[3]) == pytest.approx(errors[1] / errors[0], rel=1e-3)
    assert any(line.startswith("hinge/effort") for line in lines)
    parting = [line for line in lines if line.startswith("parts at ")]
    assert 0 < len(parting) <= 3
    runs = [open_recording(name) for name in ("a.mcap", "b.mcap")]
    for line in parting:
        t, signal, size, percent = re.fullmatch(
            r"parts at (.+) s: (\S+) by (\S+) .+, (\S+) % of its size", line
        ).groups()
        a, b = (run[signal] for run in runs)
        largest = max(np.abs(a).max(), np.abs(b).max())
        at = round(float(t) / 1e-3)
        assert float(size) == pytest.approx(b[at] - a[at], rel=1e-2)
        assert float(percent) == pytest.approx(100.0 * abs(b[at] - a[at]) / largest, rel=1e-2)
        assert float(percent) > 1.0


def test_a_run_that_begins_later_is_aligned(command):
    recorded(command, "a.mcap")
    recorded(command, "b.mcap", "controllers.hold.trajectory={type: quintic, goal: 0.2, duration: 0.2, delay: 0.1}")
    recorded(command, "c.mcap", "controllers.hold.trajectory={type: quintic, goal: 0.2, duration: 0.2, delay: 0.15}")
    code, out, err = command("compare", "b.mcap", "c.mcap", "--align")
    assert (code, err, out.splitlines()[2]) == (0, [], "b is compared 50 ms later")


def test_equal_recordings_are_equal(command):
    recorded(command, "a.mcap")
    recorded(command, "b.mcap")
    code, out, _ = command("compare", "a.mcap", "b.mcap")
    assert (code, out.splitlines()[-1]) == (0, "the runs are equal, to the bit")


def test_runs_of_other_lengths_are_compared_over_the_time_of_both(command):
    recorded(command, "a.mcap")
    recorded(command, "b.mcap", "schedule.duration=0.2")
    code, out, _ = command("compare", "a.mcap", "b.mcap")
    assert (code, out.splitlines()[-1]) == (0, "signals  all 14 equal within 1e-09 of their size up to t = 0.2 s")
    Path("cut.mcap").write_bytes(Path("a.mcap").read_bytes()[:-9])
    code, out, _ = command("compare", "a.mcap", "cut.mcap")
    lines = out.splitlines()
    assert code == 0 and lines[2].startswith("warning  cut.mcap: the recording is cut off")
    assert "  the recording is cut off after t = 0.4 s…" in next(line for line in lines if line.startswith("outcome"))
    assert max(map(len, lines[3:])) < 110


def test_what_is_infinite_in_one_run_is_no_equal_signal(command):
    recorded(command, "a.mcap")
    run = open_recording("a.mcap")
    values = np.array(run.values)
    values[-1, run.signals.index("hinge/effort")] = np.inf
    dataclasses.replace(run, values=values).save("b.npz")
    code, out, _ = command("compare", "a.mcap", "b.npz")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert code == 0 and "hinge/effort inf N·m inf N·m 0.4 s –" in lines
    assert lines[-1] == "13 more signals: 13 equal within 1e-9 of their size"


def test_what_is_no_run_is_not_compared(command):
    recorded(command, "a.mcap")
    Path("text.mcap").write_text("hello, this is a text")
    what = "not an MCAP file; give one written by 'cosim run RIG --record FILE.mcap'"
    assert command.refuses("compare", "a.mcap", "text.mcap") == [f"text.mcap: {what}"]
    what = "is no file of a run; give one that `run.save` or `cosim run --record` wrote"
    assert command.refuses("compare", "rig.yaml", "a.mcap") == [f"rig.yaml: {what}"]


def test_runs_of_rigs_without_a_common_joint_are_not_compared(command):
    recorded(command, "a.mcap")
    Path("rig.yaml").write_text(command.rig.replace("hinge", "lid"))
    recorded(command, "b.mcap")
    what = "the runs have no joint in common: a has hinge and b has lid; compare runs of one rig"
    assert command.refuses("compare", "a.mcap", "b.mcap") == [f"compare: {what}"]
    assert command.refuses("compare", "a.mcap", "b.mcap", "--align") == [f"compare: {what}"]


def test_the_version_is_that_of_the_package(command):
    import cosim

    assert command("--version") == (0, f"cosim {cosim.__version__}\n", [])


def test_joints_and_signals_to_plot_are_checked_before_anything_runs(command):
    wrong = "--plot-joints: there is no joint 'hing'; did you mean 'hinge'?"
    assert command.refuses("run", "rig.yaml", "--plot", "a.png", "--plot-joints", "hing") == [wrong]
    assert command.refuses("run", "rig.yaml", "--plot", "a.png", "--plot-signals", "hinge/speed")[0].startswith(
        "--plot-signals: there is no signal 'hinge/speed'"
    )
    wrong = "--plot-joints: there is no plot to choose them for; pass --plot FILE too"
    assert command.refuses("run", "rig.yaml", "--plot-joints", "hinge") == [wrong]
    both = ("--plot-joints", "hinge", "--plot-signals", "hinge/effort")
    wrong = "--plot: give --plot-signals or --plot-joints, not both"
    assert command.refuses("run", "rig.yaml", "--plot", "a.png", *both) == [wrong]
    assert not Path("a.png").exists()


def test_chosen_signals_are_plotted(command):
    words = ("--plot", "a.svg", "--plot-signals", "hinge/velocity, energy/kinetic")
    code, out, _ = command("run", "rig.yaml", *words)
    assert (code, out.splitlines()[-1]) == (0, "wrote    plot a.svg")
    drawn = Path("a.svg").read_text(encoding="utf-8")
    assert "<!-- hinge/velocity -->" in drawn and "<!-- energy/kinetic -->" in drawn
