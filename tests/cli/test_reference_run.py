"""`cosim run --reference`: how far the signals of a run are from those with steps of a tight tolerance."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from cosim import compare, load_rig

RIGS = Path(__file__).parents[2] / "rigs"
RIG = """
mechanism:
  bodies:
    - {name: link, joint: hinge, axis: [0, 1, 0], mass: 1, com: [0, 0, -0.3], inertia: [0.01, 0.01, 0.01]}
joints: {hinge: {initial: {position: 1.2}}}
schedule: {step: STEP, duration: 2 s}
"""


@pytest.fixture
def rig(tmp_path):
    def written(step):
        path = tmp_path / "swing.yaml"
        path.write_text(RIG.replace("STEP", step))
        return path

    return written


def test_the_errors_are_those_against_the_closest_reference_there_is(command, rig):
    """A pendulum in steps of 20 ms: the table has the differences from a run in steps that are fifty times shorter."""
    coarse = rig("20 ms")
    out = command.prints("run", str(coarse), "--reference")
    heading, row = (
        next(line for line in out.splitlines() if line.startswith(name)) for name in ("reference", "hinge/position")
    )
    assert re.fullmatch(r"reference  rodas4 with steps for a tolerance of 1e-09, \S+ × the time of the run", heading)
    exact = load_rig(coarse, ["schedule.substeps=50"]).run()
    error = compare(exact, load_rig(coarse).run()).signals["hinge/position"]
    _, rms, _, largest, *_ = row.split()
    assert float(rms) == pytest.approx(error.rms, rel=1e-3)
    assert float(largest) == pytest.approx(error.max, rel=1e-3)


def test_a_rig_that_is_known_from_a_run_before_has_the_same_reference(command, rig):
    path = str(rig("20 ms"))
    command.prints("run", path)
    tables = [command.prints("run", path, "--reference").partition("signal")[2] for _ in range(2)]
    assert tables[0] == tables[1] != ""


def test_rounding_is_no_error(command, tmp_path):
    """Of a ball that falls along one axis: the others have nothing but rounding."""
    path = tmp_path / "ball.yaml"
    path.write_text(
        "mechanism:\n  bodies: [{name: b, type: free, mass: 0.5, inertia: [5e-4, 5e-4, 5e-4]}]\n"
        "  contacts: [{name: c, link: b, sphere: 5 cm, with: ground, friction: 0.3}]\n"
        "joints: {b: {initial: {position: [0, 0, 0.06, 0, 0, 0, 1]}}}\nschedule: {step: 1 ms, duration: 0.2}\n"
    )
    out = command.prints("run", str(path), "--reference")
    assert "b.z/velocity" in out
    assert not re.search(r"b\.(x|y|rx|ry|rz)/", out.partition("signal ")[2])
    assert "range of b.z/" in command.prints("run", str(path), "--step", "0.5 ms")


def test_a_run_without_error_says_so(command, rig):
    code, out, _ = command("run", str(rig("0.1 ms")), "--reference", "--duration", "0.05")
    assert code == 0
    assert out.splitlines()[-1] == "every signal is within 1e-9 of its size"


def test_what_rounding_leaves_of_a_current_that_is_zero_is_no_error(command):
    code, out, _ = command("run", str(RIGS / "drives" / "servo_axis.yaml"), "--reference", "--duration", "0.1")
    listed = [line.split()[0] for line in out.splitlines() if "/" in line.split(" ")[0]]
    assert code == 0 and listed and not [name for name in listed if name.endswith("current_d")]


def test_real_motors_have_no_reference(command):
    code, out, err = command("run", str(RIGS / "arm_can.yaml"), "--reference", "--yes")
    assert (code, out) == (2, "")
    assert err == ["--reference: real motors have no reference; run the rig without its drivers"]


def test_other_steps_say_what_they_cost_and_how_wrong_they_are(command, rig):
    coarse = rig("20 ms")
    out = command.prints("run", str(coarse), "--integrator", "rosenbrock", "--step", "10 ms")
    words = (
        r"steps    rosenbrock, 10 ms: \S+ us per tick, \S+ × real time; largest error (\S+) of the range of (\S+), at "
    )
    found = re.match(words, out.splitlines()[-1])
    settings = ["schedule.integrator=rosenbrock", "schedule.step=10 ms"]
    run, exact = (load_rig(coarse, more).run() for more in (settings, [settings[1], "schedule.substeps=50"]))
    signals = compare(exact, run).signals
    errors = {name: signals[name].max / np.ptp(exact[name]) for name in ("hinge/position", "hinge/velocity")}
    assert found[2] == max(errors, key=errors.get)
    assert float(found[1]) == pytest.approx(errors[found[2]], rel=0.05)


def test_steps_without_error(command, rig):
    code, out, _ = command("run", str(rig("1 ms")), "--step", "0.1 ms", "--duration", "0.05")
    assert code == 0 and out.splitlines()[-1].endswith("; no motion is wrong by more than 1e-09 of its range")
