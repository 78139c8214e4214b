"""Proofs of units by least squares: right units are proven, wrong ones found with their factor."""

import numpy as np
import pytest

from cosim.control import unit_proof
from cosim.control.differentiated import SampleTrack, followed
from cosim.control.differentiated import initial as initial_track
from cosim.control.unit_proof import UnitSample

STEP, TICKS = 4e-3, 1000
T = STEP * np.arange(TICKS)
RNG = np.random.default_rng(7)
RPM, DEGREES = 60 / (2 * np.pi), 180 / np.pi
Signals = dict[str, np.ndarray]


def motion(**factors: float | np.ndarray) -> Signals:
    """A joint of 0.02 kg·m² that follows an effort, (k,) each; factors: of what is in a wrong unit."""
    amplitude, w = 0.3, 2.0 * np.pi * 0.7
    q, v, a = amplitude * (1 - np.cos(w * T)), amplitude * w * np.sin(w * T), amplitude * w * w * np.cos(w * T)
    work = np.concatenate([[0.0], np.cumsum(0.5 * 0.02 * (a[1:] + a[:-1]) * np.diff(q))])
    x = {"position": q, "velocity": v, "effort": 0.02 * a, "commanded": q, "request": 0.02 * a, "work": work}
    return x | {name: factor * x[name] for name, factor in factors.items()}


def lagged(x: np.ndarray, time: float) -> np.ndarray:
    """Through a filter of the first order."""
    y = np.zeros_like(x)
    for k in range(1, len(x)):
        y[k] = x[k] + (y[k - 1] - x[k]) * np.exp(-STEP / time)
    return y


def measured() -> Signals:
    """With lags, noise and counts; commands are 80 ms ahead."""
    x = motion()
    return x | {
        "velocity": 0.024 * np.trunc(lagged(x["velocity"], 0.05) / 0.024),
        "effort": lagged(x["effort"], 0.01) + RNG.normal(0.0, 0.005, TICKS),
        "commanded": np.concatenate([x["position"][20:], np.full(20, x["position"][-1])]),
        "position": np.round(x["position"] / 1.5e-3) * 1.5e-3,
    }


def with_friction() -> Signals:
    """Five times what the motion takes."""
    x = motion()
    effort = x["effort"] + 0.3 * np.sign(x["velocity"])
    return x | {"effort": effort, "request": effort}


def still(**factors: float) -> Signals:
    noise = {name: factor * RNG.normal(0.0, 1e-3, TICKS) for name, factor in factors.items()}
    return dict.fromkeys(motion(), np.zeros(TICKS)) | {"position": RNG.normal(0.0, 1e-4, TICKS)} | noise


# joints by what they follow: efforts, or positions, where the drive closes the loop
EFFORTS = {
    "right": motion(),
    "lags, noise and counts": measured(),
    "dry friction": with_friction(),
    "rpm": motion(velocity=RPM),
    "rad/s for rpm": motion(velocity=1 / RPM),
    "degrees": motion(velocity=DEGREES),
    "a ratio of 7": motion(velocity=7.0),
    "a sign of the velocity": motion(velocity=-1.0),
    "thousandths of an effort": motion(effort=1000.0),
    "kgf": motion(effort=9.80665),
    "a sign of the effort": motion(effort=-1.0),
    "at rest, no velocity": still(velocity=0.0),
    "at rest, wrong units": still(velocity=9.5, effort=1000.0),
    "no effort reported": motion(effort=np.nan),
    "every second sample late": motion(velocity=9.5),
    "wrong when it is proven": motion(velocity=np.where(T > 2.0, 9.5, 1.0)),
}
POSITIONS = {
    "right": motion(),
    "lags, noise and counts": measured(),
    "a ratio of the command": motion(commanded=1 / 13.0),
    "thousandths of an effort": motion(effort=1000.0),
    "efforts too small for the model": motion(effort=0.001),
}
Outcome = tuple[str, list[float]]


def outcomes(joints: list[tuple[str, Signals]], closed: np.ndarray) -> list[Outcome]:
    """(what is wrong or "", which proofs are done) of each joint when it is stopped, or after all ticks."""
    n = len(joints)
    since = np.full((TICKS, n), STEP)
    since[1::2, [name == "every second sample late" for name, _ in joints]] = 9 * STEP
    signals = {name: np.array([x[name] for _, x in joints]).T for name in UnitSample._fields}
    state, track, proofs = unit_proof.initial(n), SampleTrack(**initial_track(n)), unit_proof.proofs_of(closed)
    found: dict[int, Outcome] = {}
    for k in range(TICKS):
        sample = UnitSample(**{name: values[k] for name, values in signals.items()})
        track = followed(track, sample.position, since[k], STEP, k == 0)
        state, worst = unit_proof.updated(state, sample, since[k], track.noise, STEP, closed, k < 2)
        for j in set(range(n) if k == TICKS - 1 else np.flatnonzero(worst > 1.0)) - set(found):
            sums, proven = state["sums"][..., j], state["proven"][:, j]
            wrong, _ = unit_proof.finding([row[j] for row in proofs], unit_proof.FEWEST_BLOCKS, sums, proven)
            found[j] = wrong, proven.tolist()
    return [found[j] for j in range(n)]


@pytest.fixture(scope="module")
def of_efforts() -> dict[str, Outcome]:
    return dict(zip(EFFORTS, outcomes([*EFFORTS.items()], np.zeros(len(EFFORTS), bool)), strict=True))


@pytest.fixture(scope="module")
def of_positions() -> dict[str, Outcome]:
    return dict(zip(POSITIONS, outcomes([*POSITIONS.items()], np.ones(len(POSITIONS), bool)), strict=True))


def test_right_units_are_proven(of_efforts, of_positions):
    assert of_efforts["right"] == of_positions["right"] == of_efforts["dry friction"] == ("", [1.0, 1.0, 1.0])
    for found in (of_efforts, of_positions):
        wrong, (velocity, *_) = found["lags, noise and counts"]
        assert (wrong, velocity) == ("", 1.0)


def test_a_wrong_unit_is_found_with_its_factor(of_efforts, of_positions, said):
    for found in (of_efforts, of_positions):
        said(f"{name}: {wrong}" for name, (wrong, _) in found.items() if wrong)


def test_where_nothing_is_known_nothing_is_wrong(of_efforts, of_positions):
    for name in ("at rest, no velocity", "at rest, wrong units"):
        wrong, (velocity, _, model) = of_efforts[name]
        assert (wrong, velocity, model) == ("", 0.0, 0.0)
    # by its velocity alone; without blocks; once proven, for good; too small for the model
    assert of_efforts["no effort reported"] == ("", [1.0, 0.0, 0.0])
    assert of_efforts["every second sample late"][0] == of_efforts["wrong when it is proven"][0] == ""
    assert of_positions["efforts too small for the model"] == ("", [1.0, 1.0, 0.0])


def test_joints_of_both_kinds_side_by_side_are_judged_as_alone(of_efforts, of_positions):
    mixed = outcomes([("rpm", EFFORTS["rpm"]), *POSITIONS.items()], np.arange(1 + len(POSITIONS)) > 0)
    assert mixed == [of_efforts["rpm"], *of_positions.values()]
