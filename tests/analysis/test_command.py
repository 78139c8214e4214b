"""`cosim analyze`: what it prints, draws and writes, and wrong input."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import orjson
import pytest

from tests.kit.messages import Said
from tests.kit.samples import FOLDER

RIG = FOLDER / "two_link.yaml"
UNSTABLE = """
name: upright
mechanism:
  bodies: [{name: pole, joint: hinge, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, 0.5], inertia: [0.1, 0.1, 0.1]}]
controllers: [{type: pid, kp: 2, ki: 0, kd: 0.5, trajectory: {type: quintic, goal: 0, duration: 1 s}}]
schedule: {duration: 0.5 s}
"""


def test_it_prints_margins_and_modes(command: Callable, tmp_path: Path) -> None:
    plot, figures = tmp_path / "loops.png", tmp_path / "loops.json"
    out = command.prints("analyze", RIG, "--at", "300 ms", "--plot", plot, "--json", figures)
    lines = out.splitlines()
    assert lines[0] == "two_link at 0.3 s: 6 states, linearised exactly"
    assert lines[1].split("  ")[0] == "joint" and [line.split()[0] for line in lines[3:5]] == ["shoulder", "elbow"]
    assert any(line.startswith("together  stable with gains × ") for line in lines)
    assert any("of shoulder" in line for line in lines[7:])
    assert plot.read_bytes().startswith(b"\x89PNG")
    data = orjson.loads(figures.read_bytes())
    assert data["stable"] is True and data["exact"] is True and data["t"] == pytest.approx(0.3)
    assert data["loops"].keys() == {"shoulder", "elbow"}
    assert 0.0 < data["disk_margin"]["alpha"] <= min(m["margins"]["disk"]["alpha"] for m in data["loops"].values())


def test_one_joint_alone_in_json(command: Callable) -> None:
    out = command.prints("analyze", RIG, "--joint", "elbow", "--json", "-")
    assert orjson.loads(out)["loops"].keys() == {"elbow"}


def test_an_unstable_rig_has_no_margins_and_names_its_mode(command: Callable, tmp_path: Path) -> None:
    (tmp_path / "upright.yaml").write_text(UNSTABLE)
    out = command.prints("analyze", tmp_path / "upright.yaml", "--plot", tmp_path / "loops.svg")
    growth = np.roots([0.35, 0.5, 2.0 - 9.81 * 0.5]).max()
    lines = [line for line in out.splitlines() if line.startswith("unstable")]
    assert len(lines) == 1 and "of hinge: doubles within " in lines[0]
    assert float(lines[0].split("within ")[1].split()[0]) * 1e-3 == pytest.approx(np.log(2.0) / growth, rel=1e-2)
    row = next(line for line in out.splitlines() if line.startswith("hinge"))
    assert row.split()[-8:] == ["–"] * 8


def test_a_rig_without_loops_says_so_and_its_oscillation_without_damping_is_not_unstable(command: Callable) -> None:
    out = command.prints("analyze", FOLDER / "pendulum_chain.yaml")
    assert out.splitlines()[1] == "no joint has a loop from its measured position to the effort requested of its drive"
    assert "unstable" not in out and "\nposition of hinge_1     0.55 Hz        0              –\n" in out


@pytest.mark.parametrize("words", [("--joint", "elbo"), ("--at", "soon"), ("--plot", "a.gif")], ids=str)
def test_wrong_options(command: Callable, words: tuple[str, ...], said: Said) -> None:
    code, out, err = command("analyze", RIG, *words)
    assert (code, out) == (2, "")
    said(err)


def test_a_run_that_stops_before_the_state(command: Callable) -> None:
    code, out, err = command("analyze", FOLDER / "ur5_sim.yaml", "--at", "1 s", "--set", "schedule.step=4 ms")
    assert (code, out) == (2, "") and len(err) == 1
    assert err[0].startswith("--at: the run stops before: stopped at tick ")


def test_a_time_far_beyond_the_run(command: Callable, tmp_path: Path, said: Said) -> None:
    (tmp_path / "rig.yaml").write_text(UNSTABLE)
    said(command.refuses("analyze", tmp_path / "rig.yaml", "--at", "1e6"))
