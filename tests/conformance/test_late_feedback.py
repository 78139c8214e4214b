"""Feedback of real joints that pauses, for every length up to `guard.stale`: no limit of the table fires that would not
fire otherwise, and the cause of a stop is that no feedback came. Engines in machine code and in Python do the same."""

import dataclasses
from collections.abc import Mapping

import numpy as np
import pytest

from cosim.control.guard import Guard, check
from cosim.control.limits import LIMIT_OF, LIMITS
from cosim.core.types import COMMAND
from cosim.execution.stop_cause import cause_of
from cosim.simulation.tick.tick_functions import HAPTIC_GUARD_INPUTS, REACTION_INPUTS
from tests.kit.late_feedback import DAMPING, INERTIA, JOINT, LOAD, STALE, STEP, Pause, Played

# ticks of the motion: one half of it, with its highest speed and where it turns back with full effort
BEGIN, WHOLE = 150, 800
PHASES = {"turning": 300, "between": 430, "fast": 620}
AFTER = 60  # ticks
LONGEST = int(STALE / STEP)  # ticks
# every length where all feedback pauses, a few else
FEW = (1, 2, 3, 5, 8, 13, 26, 40, LONGEST)
# by how much a limit is above what the run without pauses comes to, and in the unit of each
MARGIN, FLOOR = 1.15, {"stall": 2e-3, "frozen": 1e-4, "residual_energy": 2e-3, "load_residual_energy": 2e-3}
FLOOR |= {"shadow_position": 1e-4, "shadow_slip": 1e-4, "units": 0.1}
# by the model, whatever the feedback, or of virtual contacts, which the rig has not
OTHERS = (*REACTION_INPUTS, *HAPTIC_GUARD_INPUTS)
FLOOR |= dict.fromkeys(OTHERS, 0.1)
OF = [(JOINT,), (LOAD,), (JOINT, LOAD)]


@pytest.fixture(scope="module")
def played(tmp_path_factory) -> tuple[Played, dict[str, np.ndarray]]:
    """The rig in compiled ticks, and what the guard checks in a run without pauses."""
    rig = Played(tmp_path_factory.mktemp("compiled"), in_python=False)
    return rig, rig.run(BEGIN, WHOLE)


@pytest.fixture(scope="module")
def in_python(tmp_path_factory) -> Played:
    return Played(tmp_path_factory.mktemp("Python"), in_python=True)


def guard_with(rig: Played, ticks: int, **bounds: float) -> Guard:
    """The guard of the rig, each tick as a joint, with these bounds, which stop."""
    keys = {name: row.key for row in LIMITS for name in row.bound_keys}
    unlimited = {key: np.full(ticks, -1e9 if key == "lower" else 1e9) for key in rig.guard.bounds}
    actions = {
        key: np.full(ticks, "stop" if key in {keys[name] for name in bounds} else "warn") for key in rig.guard.actions
    }
    return dataclasses.replace(
        rig.guard,
        bounds=unlimited | {name: np.full(ticks, value) for name, value in bounds.items()},
        actions=actions,
        stale=np.full(ticks, np.inf),
        position_tolerance=np.zeros(ticks),
    )


def fires(rig: Played, run: Mapping[str, np.ndarray], key: str, bound: float) -> np.ndarray:
    """bool (ticks,): where a limit with this bound stops the run."""
    names = LIMIT_OF[key].bound_keys
    bounds = {"lower": -bound, "upper": bound} if key == "position" else dict.fromkeys(names, bound)
    feedback = {name: run[name] for name in rig.model.guard_inputs} | {"request": run["request"]}
    feedback |= dict.fromkeys(OTHERS, np.zeros(len(run["request"])))
    feedback |= {"new": run["interval"] > 0.0, "armed": np.full(len(run["request"]), 9.0)}
    command = {name: run[f"command_{name}"] for name in COMMAND}
    return check(guard_with(rig, len(feedback["new"]), **bounds), feedback, command)[1] > 0.0


def smallest(rig: Played, run: Mapping[str, np.ndarray], key: str) -> float:
    """The smallest bound at which a limit does not stop the run without pauses."""
    low, high = 0.0, 1e6
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if fires(rig, run, key, middle).any() else (low, middle)
    return high


@pytest.fixture(scope="module")
def bounds(played) -> dict[str, float]:
    """Of each limit one that the run without pauses comes close to."""
    return {row.key: MARGIN * smallest(*played, row.key) + FLOOR.get(row.key, 0.0) for row in LIMITS}


def paused(rig: Played, at: int, length: int, of: tuple[str, ...] = (JOINT, LOAD)) -> dict[str, np.ndarray]:
    """From the tick before the pause to some time after it."""
    return rig.run(at - 1, length + 1 + AFTER, Pause(at, length, of))


def test_without_pauses_each_limit_sees_something_and_none_fires(played, bounds):
    rig, run = played
    assert run["fault"] == ""
    for key, bound in bounds.items():
        assert bound > 0.0 and not fires(rig, run, key, bound).any(), key
    seen = {key: bound for key, bound in bounds.items() if key not in FLOOR}  # the others hardly leave 0
    assert [key for key, bound in seen.items() if not fires(rig, run, key, 0.5 * bound).any()] == []


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("of", OF, ids="+".join)
def test_no_limit_fires_for_a_pause_of_the_feedback(of, phase, played, bounds):
    rig, _ = played
    lengths = range(1, LONGEST + 1) if of == (JOINT, LOAD) else FEW
    runs = {length: paused(rig, PHASES[phase], length, of) for length in lengths}
    assert {length: str(run["fault"]) for length, run in runs.items() if run["fault"] != ""} == {}
    together = {name: np.concatenate([run[name] for run in runs.values()]) for name in runs[1] if name != "fault"}
    length_of = np.concatenate([np.full(len(run["request"]), length) for length, run in runs.items()])
    wrong = {key: set(length_of[fires(rig, together, key, bound)].tolist()) for key, bound in bounds.items()}
    assert {key: which for key, which in wrong.items() if which} == {}


@pytest.mark.parametrize("queued", [1, 8])
def test_samples_that_were_queued_meanwhile_are_no_jump(queued, in_python):
    """They come when they are old already, and the first new one after them is far from them."""
    run = in_python.run(PHASES["turning"] + 99, 100, Pause(PHASES["turning"] + 100, 60, queued=queued))
    moved = np.abs(np.diff(run["position"])).max()
    assert moved > 1.4 * 8.0 * (2e-3 + 5e-3) and run["fault"] == ""  # further than a jump between two ticks


@pytest.mark.parametrize("of", [(JOINT,), (JOINT, LOAD)], ids="+".join)
def test_a_longer_pause_stops_for_lack_of_feedback(of, played):
    for at in PHASES.values():
        fault = str(paused(played[0], at, LONGEST + 9, of)["fault"])
        assert cause_of(fault) == ("stale", "elbow"), fault
        assert f"has sent no feedback for 101 ms, more than the {1e3 * STALE:g} ms of guard.stale" in fault


def test_the_motion_and_the_load_are_bounded_by_what_was_measured(played):
    """At every age up to `guard.stale`, by the bounds of `observer.extrapolate`."""
    rig, whole = played
    T = 1.0 / (2.0 * np.pi * float(rig.model.bandwidths[0]))
    for at in PHASES.values():
        run = paused(rig, at, LONGEST)
        silent, after = slice(1, 1 + LONGEST), slice(1 + LONGEST, None)
        v, a, h = (abs(float(run[name][0])) for name in ("estimated", "acceleration", "horizon"))
        fastest = v + a * (h + T)
        assert np.abs(run["position_of_tick"][silent] - run["sampled"][0]).max() <= fastest * (h + 4.0 * T) + 1e-12
        assert np.abs(run["velocity_of_tick"][silent]).max() <= fastest + 1e-12
        # what the arm takes, at most
        assert np.abs(run["load"][silent]).max() <= INERTIA * a + DAMPING * fastest + 1e-12
        assert np.abs(run["load"][after]).max() <= 1.1 * np.abs(whole["load"]).max()


def test_soon_after_a_pause_the_motion_is_that_of_a_run_without(played):
    rig, whole = played
    for at in PHASES.values():
        for length in (3, 30, LONGEST):
            run, end = paused(rig, at, length), at + length + AFTER - BEGIN - 5
            for name, size in (("position_of_tick", 1e-4), ("velocity_of_tick", 0.01), ("load", 0.02)):
                np.testing.assert_allclose(run[name][-5:], whole[name][end : end + 5], rtol=0, atol=size)


@pytest.mark.parametrize(
    ("at", "length", "of"),
    [(50, 40, (JOINT, LOAD)), (100, 5, (JOINT,)), (150, 13, (LOAD,)), (80, LONGEST + 9, (JOINT,))],
)
def test_both_engines_check_and_do_the_same(at, length, of, played, in_python):
    compiled, other = (paused(rig, at, length, of) for rig in (played[0], in_python))
    assert compiled["fault"] == other["fault"]
    for name in set(compiled) - {"fault"}:
        np.testing.assert_allclose(compiled[name], other[name], rtol=1e-6, atol=1e-9, err_msg=name)
