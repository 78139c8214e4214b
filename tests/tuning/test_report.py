"""What a report says: its texts, and the curves and marks of its charts."""

import re

import numpy as np
import pytest

from cosim import Rig, tune
from cosim.apps.tuning.figures import draw_history, draw_parameters, draw_plants
from cosim.apps.tuning.report import report_page
from cosim.apps.tuning.session import FailedTuning
from cosim.output.palette import BLUE, PALE, PALETTE, RUST
from cosim.output.svg_chart import SvgChart
from tests.tuning.textbook import TURNTABLE, turntable

COST = {"error_rms": 1.0, "effort_rms": 0.001}
STEP = {"type": "quintic", "goal": 0.5, "duration": 0.1}
SLIDER = {
    "name": "slider",
    "mechanism": {"bodies": [{"name": "cart", "type": "prismatic", "axis": [1, 0, 0], "mass": 2.0, "damping": 1.0}]},
    "controllers": [
        {
            "name": "arm",
            "type": "pd_gravity",
            "kp": 100,
            "kd": 5,
            "trajectory": {"type": "quintic", "goal": 0.5, "duration": 0.1},
        }
    ],
    "schedule": {"step": "1 ms", "duration": 0.2},
}


@pytest.fixture(scope="module")
def session():
    """Some trials overshoot, those with little damping."""
    given = {"plants": {"inertia": "20 %"}, "limits": {"overshoot": 0.7}, "optimiser": "sobol", "trials": 32}
    return tune(turntable(), {"arm.kp": "10..1000", "arm.kd": "1..100"}, COST, **given)


def text_of(session) -> str:
    return report_page(session).content().decode()


def places(chart: SvgChart, color: str) -> np.ndarray:
    """(k, 2) pixels of the longest path of this colour; others are the frame and the legend."""
    paths = re.findall(rf'<path[^>]*stroke="{color}"[^>]* d="([^"]*)"', chart.svg())
    return max((np.array(re.findall(r"[ML]([-\d.]+) ([-\d.]+)", path), dtype=float) for path in paths), key=len)


def test_the_head_of_a_report(session):
    text, best, start = text_of(session), session.best.outcome.cost, session.start.outcome.cost
    what = (
        "32 trials by sobol, seed 0, each on 3 plants for 4 s; cost: error_rms + 0.001 effort_rms, worst of the plants"
    )
    assert f"<p>{what}</p>" in text
    saved = f"{1.0 - best / start:.1%} below the start, {start:.6g}."
    assert f"<p>The best is trial {session.best.number}, cost {best:.6g}: {saved}</p>" in text
    assert ">overshoot</td>" in text and "<td>≤ 0.7</td>" in text
    assert '<p class="note">The controllers know the plant of the rig, not the perturbed ones.</p>' in text
    assert re.search(r'<p class="note"><span class="key"><b style="color:#\w+">—</b> axis</span></p>', text)
    assert "axis: effort [N·m]" in text and "axis: error [rad]" in text


def test_the_verdict_of_a_start_that_fails_and_of_one_that_is_the_best():
    failing = tune(turntable(), {"arm.kd": "1..40"}, limits={"overshoot": 0.1}, optimiser="sobol", trials=8)
    best = f"The best is trial {failing.best.number}, cost {failing.best.outcome.cost:.6g}"
    assert f"<p>{best}; start: {failing.start.outcome.failed}.</p>" in text_of(failing)
    assert f'<td>0</td><td class="words">{failing.start.outcome.failed}</td>' in text_of(failing)
    data = {**TURNTABLE["controllers"][0], "kd": 10.0}
    good = tune(turntable(controllers=[data]), {"arm.kd": "5..40"}, optimiser="sobol", trials=4)
    assert f"No trial is better than the gains of the rig, cost {good.best.outcome.cost:.6g}." in text_of(good)


def test_units_of_a_joint_that_slides():
    text = text_of(tune(Rig.from_dict(SLIDER), {"arm.kp": "50..200"}, optimiser="sobol", trials=1))
    assert "1 trial by sobol" in text and "cart: effort [N]" in text and "cart: error [m]" in text


def test_the_chart_of_the_trials(session):
    (chart,) = draw_history(session)
    good = [trial for trial in session.trials if trial.outcome.feasible]
    dots, curve, failed = (places(chart, color) for color in (PALE, BLUE, RUST))
    assert 0 < len(good) < len(session.trials)
    assert len(dots) == len(good) and len(failed) == len(session.trials) - len(good)
    assert (np.diff(curve[:, 1]) >= 0.0).all()  # downwards, as pixels grow
    best = next(k for k, trial in enumerate(good) if trial is session.best)
    assert curve[-1, 1] == dots[:, 1].max() == dots[best, 1]


def test_the_charts_of_the_parameters(session):
    charts = draw_parameters(session)
    titles = [re.findall(r'aria-label="([^"]*)"', chart.svg())[0] for chart in charts]
    assert titles == ["arm.kp [N·m/rad]", "arm.kd [N·m·s/rad]"]
    for k, chart in enumerate(charts):
        ((x, _),) = places(chart, RUST)
        position = session.evaluator.space.positions(np.array([session.best.values]))[0, k]
        assert x == pytest.approx(52.0 + position * (310 - 10 - 52), abs=0.1)


def test_the_chart_of_the_plants(session):
    names = session.evaluator.plants.names
    (chart,) = draw_plants(session.start, session.best, names)
    dots = places(chart, BLUE)
    order = np.argsort(session.best.outcome.costs)
    assert len(dots) == 3 and (np.diff(dots[:, 1]) > 0.0).all()  # a row each, from the top
    assert (np.diff(dots[order, 0]) >= 0.0).all()


def test_the_bode_diagrams_have_a_curve_of_the_start_and_of_the_best(session):
    charts = re.findall(r"<svg.*?</svg>", text_of(session))
    for title in ("gain [dB]", "phase [°]"):
        (chart,) = (chart for chart in charts if f'aria-label="{title}' in chart)
        curves = re.findall(rf'<path fill="none" stroke="{PALETTE[0]}"([^>]*) d="([^"]+)"', chart)
        assert ["dasharray" in look for look, _ in curves] == [True, False]
        assert all(path.count("L") > 50 for _, path in curves)


def test_a_session_without_a_good_trial_shows_the_nearest_and_no_empty_chart():
    given = {"limits": {"phase_margin": "170 deg", "effort_max": 1e6}, "optimiser": "sobol", "trials": 8}
    with pytest.raises(FailedTuning) as failed:
        tune(turntable(), {"arm.kp": "10..1000", "arm.kd": "1..100"}, COST, **given)
    session = failed.value.session
    nearest, text = session.nearest, text_of(session)
    assert nearest is not None and "Parameters against cost" not in text and text.count("<svg") == 1
    assert f"<th>trial {nearest.number}</th>" in text and f"<td>{nearest.values[0]:.6g}</td>" in text
    found = np.degrees(nearest.outcome.figures["phase_margin"][1])
    assert f"<td>{found:.4g} deg</td><td>≥ 170 deg</td><td>{170.0 - found:.4g} deg</td>" in text
    assert "<td>≤ 1e+06 N·m</td><td>holds</td>" in text
    (chart,) = draw_history(session)
    costs = np.array([trial.outcome.cost for trial in session.trials])
    assert len(np.unique(places(chart, RUST)[:, 1])) == len(np.unique(costs.round(9))) > 1
