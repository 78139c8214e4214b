"""`cosim compare`, `cosim --version`, and plots of chosen joints and signals."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

import cosim
from cosim import load_rig, open_recording


def record(name, *overrides):
    load_rig("rig.yaml", overrides).run(record=name)


def compared(command, *words):
    """The lines, with one space between columns."""
    out = command.prints("compare", *words)
    return [" ".join(line.split()) for line in out.splitlines()]


def test_two_recordings_are_compared(recorded):
    lines = compared(recorded, "a.mcap", "soft.mcap")
    assert lines[:2] == ["a a.mcap swing, 0.4 s", "b soft.mcap swing, 0.4 s"]
    assert "parameters.hold.kp 50 25 0.5" in lines
    (joint,) = (line.split() for line in lines if line.startswith("hinge "))
    errors = [float(joint[1]), float(joint[2])]
    assert float(joint[3]) == pytest.approx(errors[1] / errors[0], rel=1e-3)
    assert any(line.startswith("hinge/effort") for line in lines)
    parting = [line for line in lines if line.startswith("parts at ")]
    assert 0 < len(parting) <= 3
    runs = [open_recording(name) for name in ("a.mcap", "soft.mcap")]
    for line in parting:
        found = re.fullmatch(r"parts at (.+) s: (\S+) by (\S+) .+, (\S+) % of its size", line)
        t, signal, size, percent = found.groups()
        a, b = (run[signal] for run in runs)
        largest = max(np.abs(a).max(), np.abs(b).max())
        at = round(float(t) / 1e-3)
        assert float(size) == pytest.approx(b[at] - a[at], rel=1e-2)
        assert float(percent) == pytest.approx(100.0 * abs(b[at] - a[at]) / largest, rel=1e-2)
        assert float(percent) > 1.0


def test_a_run_that_begins_later_is_aligned(command):
    motion = "controllers.hold.trajectory={type: quintic, goal: 0.2, duration: 0.2, delay: %s}"
    record("b.mcap", motion % 0.1)
    record("c.mcap", motion % 0.15)
    assert compared(command, "b.mcap", "c.mcap", "--align")[2] == "b is compared 50 ms later"


def test_equal_recordings_are_equal(recorded):
    record("again.mcap")
    assert compared(recorded, "a.mcap", "again.mcap")[-1] == "the runs are equal, to the bit"


def test_runs_of_other_lengths_are_compared_over_the_time_of_both(recorded):
    lines = compared(recorded, "a.mcap", "half.mcap")
    assert lines[-1] == "signals all 14 equal within 1e-09 of their size up to t = 0.2 s"
    _, out, _ = recorded("compare", "a.mcap", "cut.mcap")
    lines = out.splitlines()
    assert lines[2].startswith("warning  cut.mcap: the recording is cut off")
    assert "  the recording is cut off after t = 0.4 s…" in next(line for line in lines if line.startswith("outcome"))
    assert max(map(len, lines[3:])) < 110


def test_what_is_infinite_in_one_run_is_no_equal_signal(recorded):
    run = open_recording("a.mcap")
    values = np.array(run.values)
    values[-1, run.signals.index("hinge/effort")] = np.inf
    dataclasses.replace(run, values=values).save("b.npz")
    lines = compared(recorded, "a.mcap", "b.npz")
    assert "hinge/effort inf N·m inf N·m 0.4 s –" in lines
    assert lines[-1] == "13 more signals: 13 equal within 1e-9 of their size"


def test_what_cannot_be_compared(recorded, said):
    Path("text.mcap").write_text("hello, this is a text")
    Path("rig.yaml").write_text(recorded.rig.replace("hinge", "lid"))
    record("lid.mcap")  # no joint in common
    for words in (["a.mcap", "text.mcap"], ["rig.yaml", "a.mcap"], ["a.mcap", "lid.mcap"]):
        said(recorded.refuses("compare", *words))
    assert recorded.refuses("compare", *words, "--align") == recorded.refuses("compare", *words)


def test_the_version_is_that_of_the_package(command):
    assert command("--version") == (0, f"cosim {cosim.__version__}\n", [])


def test_chosen_signals_are_plotted(command):
    words = ("--plot", "a.svg", "--plot-signals", "hinge/velocity, energy/kinetic")
    assert command.prints("run", "rig.yaml", *words).splitlines()[-1] == "wrote    plot a.svg"
    drawn = Path("a.svg").read_text(encoding="utf-8")
    assert "<!-- hinge/velocity -->" in drawn and "<!-- energy/kinetic -->" in drawn


def test_a_log_with_gains_uneven_rows_and_rubbish(recorded, said):
    """Of the run itself: currents of 2 N·m/A, degrees, numbered columns, a spike, an empty cell and a cut line."""
    run = open_recording("a.mcap")
    rows = np.cumsum(np.random.default_rng(0).integers(1, 4, 150))
    t, q, tau = (np.asarray(of)[rows] for of in (run.t, run["hinge/position"], run["hinge/effort"]))
    lines = [f"{a:.9g},{b:.12g},{c:.12g}" for a, b, c in zip(t, np.degrees(q), tau / 2, strict=True)]
    lines[20] = f"{t[20]:.9g},1e6,0"
    lines[40] = f"{t[40]:.9g},,0"
    lines[60] = lines[60].rpartition(",")[0]
    Path("log.csv").write_text("\n".join(["t,q1,i1", *lines, ""]))
    out = compared(recorded, "a.mcap", "log.csv", "--unit", "position=deg", "--gain", "effort=2 N*m/A")
    said([line for line in out if line.startswith("note")])
    runs = {name: line for line in out if (name := line.split()[0]) in ("hinge/position", "hinge/effort")}
    for line in runs.values():
        assert float(line.split()[1]) < 1e-3, line
    for words in (
        ["--gain", "effort=2 N*m/V", "--unit", "current=A"],
        ["--gain", "effort 2"],
        ["--column", "effort=i1,i2"],
    ):
        said(recorded.refuses("compare", "a.mcap", "log.csv", *words))
