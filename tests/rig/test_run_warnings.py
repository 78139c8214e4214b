"""Warnings of runs in Python: the same as the command prints, and what an energy residual says of step and model."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import pytest

from cosim import StoppedRun, load_rig, load_run
from cosim.core.errors import RunWarning
from cosim.rig.run import step_comparison
from cosim.rig.run.run import html_of
from cosim.rig.run.run_warnings import COARSE, INVALID, NOT_KNOWN

# two masses that fall and swing; the drive states a part of its friction as loss
LEAKING = """
import numpy as np
from cosim.plugin import ACTUATOR_INPUTS, ACTUATOR_OUTPUTS, param, params


@params
class Params:
    stated: float = param(default=1.0)


class Leaking:
    inputs, outputs, reflected_inertia, positions = ACTUATOR_INPUTS, ACTUATOR_OUTPUTS, 0.0, ()

    def __init__(self, params):
        self.params = params

    def initial(self, position, velocity):
        return {}

    def flow(self, t, p, x, u):
        effort = -0.2 * u["velocity"]
        loss = -p.stated * effort * u["velocity"]
        return {}, {"effort": effort, "power": 0.0, "loss": loss, "stored": 0.0}


load = Leaking
"""
PENDULUM = """
mechanism:
  gravity: [0, -9.81, 0]
  bodies: [{name: hinge, mass: 1 kg, com: [0.5, 0, 0], inertia: [0.01, 0.01, 0.01]}]
joints: {hinge: {initial: {position: 170 deg}}}
schedule: {step: 200 ms, duration: 4 s}
"""
LEAK = PENDULUM.replace("position: 170 deg}", "position: 100 deg}, actuator: {type: leaking.py, stated: %s}").replace(
    "200 ms", "2 ms"
)


@pytest.fixture
def given(tmp_path, monkeypatch):
    """A rig from its text, with the drive beside it, as the command reads it too."""
    monkeypatch.chdir(tmp_path)
    Path("leaking.py").write_text(LEAKING)

    def load(text, *overrides, **more):
        Path("rig.yaml").write_text(text)
        return load_rig("rig.yaml", overrides, **more)

    return load


def given_by(run):
    """(the run, or the stopped one, and the texts that were given)"""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        try:
            finished = run()
        except StoppedRun as stopped:
            finished = stopped.run
    assert all(each.category is RunWarning and each.filename == __file__ for each in found)
    return finished, [str(each.message) for each in found]


CASES = {
    "coarse step": (PENDULUM, "the step is too coarse"),
    "leak": (LEAK % 0.9, "a model error"),
    "large leak": (LEAK % 0.2, "a model error"),
    "fine": (LEAK % 1, ""),
}


@pytest.mark.parametrize("case", CASES)
def test_python_gives_what_the_command_prints(given, command, case, said):
    text, cause = CASES[case]
    run, found = given_by(given(text).run)
    assert found == run.warnings and len(found) == bool(cause)
    code, out, err = command("run", "rig.yaml", "--json", "a.json")
    residual = json.loads(Path("a.json").read_bytes())["energy"]["residual_relative"]
    assert code == (1 if residual > INVALID else 0) and bool(cause) == (residual > COARSE)
    printed = [line.removeprefix("warning  ") for line in out.splitlines() if line.startswith("warning")]
    assert [*printed, *(line.removeprefix("rig.yaml: ") for line in err)] == found
    assert all(cause in line for line in found)
    said(found, r"(?<=residual is )\S+", r"(?<=instead of )[\d.e-]+")


def test_the_evidence_is_two_runs(given):
    """The residual with half the step, as a run by itself has it."""
    run = given(PENDULUM).run()
    half = given(PENDULUM, "schedule.substeps=2").run()
    ((first, second),) = re.findall(r"is (\S+) of the energy instead of (\S+);", run.cause)
    shown = [float(first), float(second)]
    residuals = [each.summary["energy"]["residual_relative"] for each in (half, run)]
    assert shown == pytest.approx(residuals, rel=0.05)


def test_a_long_run_is_compared_over_its_beginning(given, monkeypatch):
    monkeypatch.setattr(step_comparison, "LONGEST", 1e-9)
    spans = []
    session = step_comparison.run_session
    monkeypatch.setattr(
        step_comparison, "run_session", lambda *given, **more: spans.append(given[1]) or session(*given, **more)
    )
    run = given(PENDULUM).run()
    assert spans == [0.2, 0.2]  # a tick at least
    assert "instead of" in run.cause


@pytest.mark.parametrize(
    "settings",
    [{"overrides": ["schedule.realtime=yes", "schedule.duration=0.6"]}, {"interpret": True}],
    ids=["real time", "Python"],
)
def test_no_cause_is_named_that_was_not_found(given, settings):
    """Runs that are not made again: in real time, and of code of the user."""
    text = LEAK.replace("2 ms", "20 ms") % 0.2
    rig = given(text, *settings.get("overrides", ()), interpret=settings.get("interpret"))
    assert not step_comparison.can_compare(rig)
    run = rig.run()
    (line,) = [line for line in run.warnings if "energy balance" in line]
    assert run.cause == "" and line.endswith(NOT_KNOWN)


def test_a_saved_run_has_its_warnings(given):
    run, found = given_by(given(LEAK % 0.9).run)
    run.save("run.npz")
    assert load_run("run.npz").warnings == found


def test_a_notebook_shows_them(given):
    run = given(LEAK % 0.9).run()
    assert f"<b>warning</b> {run.warnings[0]}".replace("'", "&#x27;") in html_of(run, run.summary, run.warnings)


UNSTABLE = PENDULUM.replace("200 ms", "1 ms") + "controllers: [{name: pd, type: feedforward_pd, kp: 1e6, kd: 2}]\n"


def test_parameters_of_a_run_are_not_blamed_for_those_of_the_file(given):
    """Before a run what is unstable with its present parameters, and after `set` with these."""
    rig = given(UNSTABLE, "schedule.duration=20 ms")
    _, found = given_by(rig.run)
    assert any("is unstable at a step" in line for line in found)
    calm, _ = given_by(lambda: rig.run(parameters={"pd.kp": 10.0}))
    assert not calm.unstable
    rig.set("pd.kp", 10.0)
    assert not given_by(rig.run)[1]


LAWS = """
from cosim.plugin import ConstraintLaw, ReactionSpec, ops, param, params


@params
class Params:
    kind: str = param(default="")


TURN, RATE = ReactionSpec("hold", "N*m", "rad"), ReactionSpec("still", "N*m", "rad/s")


def load(params):
    rows = {
        "drifts": lambda f, q, t: [q[0] - q[1], q[0] - q[1] + 5e-3 * ops.sin(t) ** 3],
        "bends": lambda f, q, t: [q[0] - q[1], q[0] - q[1] + 1e-3 * q[0] ** 4],
    }
    if params.kind in ("still", "moves"):
        row, timed = rows["drifts"], params.kind == "moves"
        return ConstraintLaw((TURN,), lambda f, q, t: [row(f, q, t)[timed]], timed=timed)
    if params.kind in rows:
        return ConstraintLaw((TURN, TURN._replace(name="again")), rows[params.kind], timed=params.kind == "drifts")
    moves = lambda f, q, t: [q[0] - 5e-3 * ops.sin(t) ** 3]
    return ConstraintLaw((TURN, RATE), moves, lambda f, q, v, t: [v[0]], timed=True)
"""
PAIR = """
mechanism:
  gravity: [0, -9.81, 0]
  bodies:
    - {name: a, mass: 1 kg, com: [0.5, 0, 0], inertia: [0.01, 0.01, 0.01]}
    - {name: b, parent: base, mass: 1 kg, com: [0.4, 0, 0], inertia: [0.01, 0.01, 0.01]}
  constraints: [{name: tie, type: laws.py, joints: [a, b], params: {kind: %s}}]
joints: {b: {initial: {guess: 0}}}
schedule: {step: 2 ms, duration: %s}
"""
FOUR_BAR = """
mechanism:
  gravity: [0, -9.81, 0]
  bodies:
    - {name: crank, mass: 1 kg, com: [10 cm, 0, 0], inertia: [0, 0.01, 0.01]}
    - {name: coupler, origin: {xyz: [20 cm, 0, 0]}, mass: 2 kg, com: [25 cm, 0, 0], inertia: [0, 0.05, 0.05]}
    - {name: rocker, parent: base, origin: {xyz: [50 cm, 0, 0]}, mass: 1 kg, com: [10 cm, 0, 0],
       inertia: [0, 0.02, 0.02]}
  loops: [{name: pin, parent: rocker, child: coupler, origin: {xyz: [%s, 0, 0]}, child_origin: {xyz: [50 cm, 0, 0]}}]
"""
TURNING = (
    FOUR_BAR % "40 cm"
    + """  loop_closure: {drift: none}
joints:
  crank: {initial: {position: 0, velocity: 12}}
  coupler: {initial: {guess: -53 deg}}
  rocker: {initial: {guess: -90 deg}}
schedule: {step: 10 ms, duration: 2 s}
"""
)
# two motions that begin alike, of a parallelogram whose cranks stay parallel
CONTRADICTORY = (
    FOUR_BAR % "20 cm"
    + """
joints:
  crank: {prescribed: {type: sine, amplitude: 0.5, frequency: 1 Hz, offset: 1}}
  coupler: {initial: {guess: -1}}
  rocker: {prescribed: {type: sine, amplitude: 0.505050505050505, frequency: 0.99 Hz, offset: 1}}
schedule: {step: 2 ms, duration: 0.6 s}
"""
)
VIOLATED_BY = {
    "coarse step": (TURNING, "the step is too coarse"),
    "given motions": (CONTRADICTORY, "it does not fit the motion given to 'crank' and 'rocker'"),
    "rate against residual": (PAIR % ("turns", "1.5 s"), "its equations contradict each other"),
    "rows that part with time": (PAIR % ("drifts", "1.5 s"), "its equations contradict each other"),
    "two constraints": (
        (PAIR % ("still", "1.5 s")).replace(
            "{kind: still}}]", "{kind: still}}, {name: other, type: laws.py, joints: [a, b], params: {kind: moves}}]"
        ),
        "its equations contradict those of 'tie'",
    ),
    "rows that part with motion": (PAIR % ("bends", "0.35 s"), "its row 'again' followed from others at the start"),
    "consistent": (TURNING.replace("none", "projection").replace("10 ms", "1 ms"), ""),
}


@pytest.mark.parametrize("case", VIOLATED_BY)
def test_a_violated_constraint_has_its_cause(given, said, case):
    """The largest violation, and what a second run and the equations in the worst state show."""
    Path("laws.py").write_text(LAWS)
    text, cause = VIOLATED_BY[case]
    run, found = given_by(given(text).run)
    assert len(found) == bool(cause) and all(cause in line for line in found)
    said(found, r"(?<=up to )\S+", r"(?<=step it is )\S+", r"(?<=instead of )[\d.e-]+")
    run.save("run.npz")
    assert load_run("run.npz").warnings == found


def test_the_evidence_of_a_violation_is_two_runs(given):
    runs = [given(TURNING, f"schedule.substeps={n}").run() for n in (2, 1)]
    ((half, whole),) = re.findall(r"it is (\S+) instead of (\S+);", runs[1].causes_of_violations["pin/violation"])
    peaks = [run.summary["constraints"]["pin"]["violation_max"] for run in runs]
    assert [float(half), float(whole)] == pytest.approx(peaks, rel=0.05)
