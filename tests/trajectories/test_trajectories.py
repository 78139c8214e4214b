"""Trajectories: boundary values, exact derivatives, traced and numeric results, errors in CSV files."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from cosim.core.compile import ArrayPort, Routine, compile
from cosim.core.errors import InputError, InputErrors
from cosim.core.types import Trajectory
from cosim.plugins.trajectories import chirp, minimum_jerk, multisine, quintic, sine, spline, trapezoidal, waypoints
from cosim.plugins.trajectories.trapezoidal import Trapezoidal
from tests.kit.given import beside
from tests.kit.refusals import raised, refusal

GIVEN = beside(__file__)

KINDS: dict[str, ModuleType] = {
    module.__name__.rpartition(".")[2]: module
    for module in (chirp, minimum_jerk, multisine, quintic, sine, spline, trapezoidal, waypoints)
}
JOINTS = ("shoulder", "elbow")
START = np.array([0.2, -0.4])
KEYS = ["position", "velocity", "acceleration", "effort"]
CSV = "t, elbow, note, shoulder\n0.5,0,9,1\n\n1.0,0.5,9,2\n2.5,-1,9,1.5\n3,0,9,1\n"


def make(kind: str, folder: Path = Path(), **keys: Any) -> Trajectory:
    module = KINDS[kind]
    return module.load(module.Params(**keys), JOINTS, folder, START)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "way.csv").write_text(CSV)
    return tmp_path


CASES = {
    "quintic": ("quintic", {"goal": (1.0, 2.0), "duration": 1.5, "delay": 0.5}),
    "quintic back": ("quintic", {"goal": (1.0, 2.0), "start": (0.0, 1.0), "duration": 1.5, "back": True}),
    "trapezoidal": (
        "trapezoidal",
        {"goal": (1.2, -0.5), "max_velocity": (0.5, 3.0), "max_acceleration": (2.0, 0.8), "delay": 0.3},
    ),
    "sine": ("sine", {"amplitude": (0.3, 0.1), "frequency": (0.7, 2.0), "phase": (0.0, 0.5), "offset": (0.0, 0.1)}),
    "sine ramp": (
        "sine",
        {"amplitude": (0.3, 0.1), "frequency": (0.7, 2.0), "phase": (0.4, 0.5), "offset": (0.0, 0.1), "ramp": 1.3},
    ),
    "chirp": ("chirp", {"amplitude": (0.3, 0.1), "f0": 0.5, "f1": 3.0, "duration": 2.5}),
    "chirp ramp": ("chirp", {"amplitude": (0.3, 0.1), "f0": 0.5, "f1": 3.0, "duration": 2.5, "ramp": 0.6}),
    "chirp delayed": (
        "chirp",
        {"amplitude": (0.3, 0.1), "f0": 0.5, "f1": 3.0, "duration": 2.0, "ramp": 0.6, "delay": 0.5},
    ),
    "chirp effort": (
        "chirp",
        {"amplitude": (3.0, 1.0), "f0": 0.5, "f1": 3.0, "duration": 2.5, "of": "effort", "ramp": 0.6},
    ),
    "multisine": ("multisine", {"amplitude": (0.3, 0.1), "f0": 0.5, "f1": 3.0, "period": 2.0, "periods": 3}),
    "multisine effort": (
        "multisine",
        {"amplitude": (3.0, 1.0), "f0": 1.0, "f1": 6.0, "period": 1.0, "count": 4, "of": "effort"},
    ),
    "waypoints": ("waypoints", {"file": "way.csv"}),
    "minimum_jerk": ("minimum_jerk", {"goal": (1.0, 2.0), "duration": 1.9, "via": ((0.5, 0.9),), "times": (1.3,)}),
    "spline": ("spline", {"points": ((0.5, 0.9), (1.0, 2.0)), "times": (1.3, 1.9)}),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, folder: Path) -> Trajectory:
    kind, keys = CASES[request.param]
    return make(kind, folder, **keys)


def table(trajectory: Trajectory, times: np.ndarray) -> dict[str, np.ndarray]:
    samples = [trajectory.sample(t) for t in times]
    return {key: np.array([sample[key] for sample in samples]) for key in KEYS}


def test_every_kind_has_a_case() -> None:
    assert {kind for kind, _ in CASES.values()} == set(KINDS)


def test_derivatives_match_central_differences(case: Trajectory) -> None:
    step = 1e-5
    kinks = [0.0, 0.3, 0.5, 0.6, 1.3, 1.9, 2.0, 2.5, min(case.end, 9.0)]
    if isinstance(case, Trapezoidal):
        kinks += [case.delay + case.duration * r for ramp in case.ramp for r in (ramp, 1 - ramp)]
    times = np.array([t for t in np.linspace(0.01, 4.0, 211) if min(abs(t - k) for k in kinks) > 2 * step])
    before, now, after = (table(case, times + shift) for shift in (-step, 0.0, step))
    for value, rate in (("position", "velocity"), ("velocity", "acceleration")):
        slope = (after[value] - before[value]) / (2 * step)
        np.testing.assert_allclose(now[rate], slope, atol=2e-6 * max(1.0, np.abs(now[rate]).max()))


def test_a_multisine_has_its_frequencies_alone_and_its_peak() -> None:
    period, rate = 2.0, 500.0
    trajectory = make("multisine", amplitude=(3.0, 1.0), f0=1.0, f1=20.0, period=period, periods=4, of="effort")
    whole = table(trajectory, np.arange(round(trajectory.end * rate)) / rate)["effort"]
    assert np.abs(whole).max(axis=0) == pytest.approx([3.0, 1.0], rel=5e-3)
    first, second = (whole[round(k * period * rate) : round((k + 1) * period * rate)] for k in (1, 2))
    np.testing.assert_allclose(first, second, atol=1e-11)
    size = np.abs(np.fft.rfft(first[:, 0]))
    excited = np.flatnonzero(size > 1e-6 * size.max())
    np.testing.assert_array_equal(excited / period, multisine.grid(1.0, 20.0, period, 40))
    assert excited[0] == 2 and excited[-1] == 40 and len(excited) > 20
    in_phase = np.sqrt(2.0 * len(excited))
    assert 3.0 / np.sqrt(np.mean(first[:, 0] ** 2)) < 0.5 * in_phase


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"f0": 3.0, "f1": 2.0, "period": 1.0}, "f1 2 Hz is below f0 3 Hz; exchange them"),
        ({"f0": 0.5, "f1": 2.0, "period": 1.0}, "a period of 1 s has no sine of 0.5 Hz; use 2 s or more"),
    ],
)
def test_a_multisine_without_frequencies(keys: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        multisine.Params(amplitude=(1.0, 1.0), **keys)  # type: ignore[arg-type]


def test_minimum_jerk_is_the_polynomial_and_rests_outside() -> None:
    s = np.linspace(0.0, 1.0, 11)
    polynomial = np.polynomial.Polynomial([0, 0, 0, 10, -15, 6])
    for k, value in enumerate(quintic.minimum_jerk(s)):
        expected = polynomial.deriv(k) if k else polynomial
        np.testing.assert_allclose(value, expected(s), atol=1e-13)
    for outside, value in ((-0.1, 0.0), (1.1, 1.0)):
        assert quintic.minimum_jerk(outside) == (value, 0.0, 0.0)


def test_quintic_waits_goes_half_way_at_half_time_and_stays() -> None:
    quintic = make("quintic", goal=(1.0, 2.0), duration=2.0, delay=1.0)
    assert quintic.end == 3.0
    for t, expected in (
        (0.0, START),
        (1.0, START),
        (2.0, (START + np.array([1, 2])) / 2),
        (3.0, [1, 2]),
        (9.0, [1, 2]),
    ):
        np.testing.assert_allclose(quintic.sample(t)["position"], expected, rtol=1e-15)
    # the highest velocity of the polynomial is 15/8 of the mean
    np.testing.assert_allclose(quintic.sample(2.0)["velocity"], 15 / 8 * ([1, 2] - START) / 2.0)


def test_quintic_returns_to_its_own_start() -> None:
    quintic = make("quintic", start=(0.0, 1.0), goal=(1.0, 3.0), duration=2.0, delay=1.0, back=True)
    assert quintic.end == 5.0
    for t, expected in ((0.0, [0, 1]), (3.0, [1, 3]), (4.0, [0.5, 2.0]), (5.0, [0, 1]), (8.0, [0, 1])):
        np.testing.assert_allclose(quintic.sample(t)["position"], expected, atol=1e-15)
    np.testing.assert_allclose(quintic.sample(4.0)["velocity"], [-15 / 16, -15 / 8])


def test_the_slowest_joint_moves_at_its_bounds_and_all_arrive_together() -> None:
    way = np.array([2.0, 0.1])
    bounds: dict[str, Any] = {"max_velocity": (0.5, 1.0), "max_acceleration": (1.0, 4.0)}
    trajectory = make("trapezoidal", goal=tuple(START + way), **bounds)
    assert trajectory.end == pytest.approx(2.0 / 0.5 + 0.5 / 1.0)
    np.testing.assert_allclose(trajectory.sample(trajectory.end)["position"], START + way, atol=1e-15)
    np.testing.assert_array_equal(trajectory.sample(0.0)["position"], START)
    motion = table(trajectory, np.linspace(0.0, trajectory.end, 1001))
    np.testing.assert_allclose(motion["velocity"][:, 0].max(), 0.5)
    np.testing.assert_allclose(np.abs(motion["acceleration"][:, 0]).max(), 1.0)
    assert motion["velocity"][:, 1].max() < 0.1
    assert np.abs(motion["acceleration"][:, 1]).max() < 0.1
    assert set(np.sign(motion["acceleration"][:, 0])) == {-1.0, 0.0, 1.0}


def test_a_short_distance_gives_a_triangle() -> None:
    way = 0.25
    trajectory = make(
        "trapezoidal", goal=(START[0] - way, START[1]), max_velocity=(9.0, 1.0), max_acceleration=(4.0, 1.0)
    )
    assert trajectory.end == pytest.approx(2 * math.sqrt(way / 4.0))
    centre = trajectory.sample(trajectory.end / 2)
    np.testing.assert_allclose(centre["position"], START - [way / 2, 0.0])
    np.testing.assert_allclose(centre["velocity"], [-math.sqrt(way * 4.0), 0.0])
    for part, sign in ((0.25, -1), (0.75, 1)):
        np.testing.assert_allclose(trajectory.sample(part * trajectory.end)["acceleration"], [sign * 4.0, 0.0])


def test_joints_that_have_arrived_stay() -> None:
    trajectory = make("trapezoidal", goal=tuple(START), max_velocity=(1.0, 1.0), max_acceleration=(1.0, 1.0), delay=0.5)
    assert trajectory.end == 0.5
    for t in (0.0, 0.5, 0.7, 3.0):
        sample = trajectory.sample(t)
        np.testing.assert_array_equal(sample["position"], START)
        np.testing.assert_array_equal(sample["velocity"], 0.0)
        np.testing.assert_array_equal(sample["acceleration"], 0.0)


def test_sine_oscillates_about_the_start() -> None:
    sine = make("sine", amplitude=(0.3, 0.5), frequency=(0.5, 0.25), offset=(0.0, 1.0), phase=(0.0, math.pi / 2))
    assert sine.end == math.inf
    np.testing.assert_allclose(sine.sample(0.0)["position"], [START[0], START[1] + 1.5])
    np.testing.assert_allclose(sine.sample(0.0)["velocity"], [0.3 * math.pi, 0.0], atol=1e-15)
    np.testing.assert_allclose(sine.sample(0.5)["position"][0], START[0] + 0.3)
    np.testing.assert_allclose(sine.sample(1.0)["position"][1], START[1] + 1.0)


def test_a_ramp_starts_the_sine_at_rest_and_has_no_effect_afterwards() -> None:
    keys: dict[str, Any] = {"amplitude": (0.3, 0.5), "frequency": (0.5, 2.0), "phase": (0.0, 1.0)}
    ramped, plain = make("sine", ramp=2.0, **keys), make("sine", **keys)
    first = ramped.sample(0.0)
    np.testing.assert_array_equal(first["position"], START)
    np.testing.assert_array_equal(first["velocity"], 0.0)
    np.testing.assert_array_equal(first["acceleration"], 0.0)
    for t in (2.0, 3.3):
        for key in KEYS:
            np.testing.assert_allclose(ramped.sample(t)[key], plain.sample(t)[key], rtol=1e-12)
    half, whole = (sine.sample(1.0)["position"] - START for sine in (ramped, plain))
    np.testing.assert_allclose(half, whole / 2, atol=1e-15)


def test_chirp_sweeps_linearly_from_f0_to_f1() -> None:
    chirp = make("chirp", amplitude=(1.0, 2.0), f0=1.0, f1=4.0, duration=2.0)
    # zero crossings where f0 t + (f1 − f0) t² / (2 T) counts half turns
    halves = np.arange(10)
    crossings = (-1.0 + np.sqrt(1.0 + 0.75 * halves * 2)) / 1.5
    for t in crossings[crossings < 2.0]:
        np.testing.assert_allclose(chirp.sample(t)["position"], START, atol=1e-14)
    near_end = chirp.sample(2.0 - 1e-9)
    np.testing.assert_allclose(near_end["velocity"], 2 * math.pi * 4.0 * np.array([1.0, 2.0]), rtol=1e-6)
    np.testing.assert_allclose(chirp.sample(5.0)["position"], START, atol=1e-14)


def test_chirp_of_effort_keeps_the_positions() -> None:
    keys: dict[str, Any] = {"amplitude": (1.0, 2.0), "f0": 1.0, "f1": 4.0, "duration": 2.0}
    effort, position = make("chirp", of="effort", **keys), make("chirp", **keys)
    for t in (0.0, 0.13, 1.7):
        sample = effort.sample(t)
        np.testing.assert_array_equal(sample["position"], START)
        np.testing.assert_allclose(sample["effort"], position.sample(t)["position"] - START, atol=1e-15)
    np.testing.assert_array_equal(effort.sample(2.0)["effort"], 0.0)


def test_chirp_ramps_must_fit() -> None:
    words = str(raised(ValueError, make, "chirp", amplitude=(1.0, 1.0), f0=1.0, f1=4.0, duration=2.0, ramp=1.5))
    assert words == "two ramps of 1.5 s do not fit in 2 s; shorten ramp"
    words = str(raised(ValueError, make, "chirp", amplitude=(1.0, 1.0), f0=1.0, f1=4.0, duration=2.0, delay=1.0))
    assert words == "after a delay the velocity would jump; set ramp"


def test_waypoints_pass_every_row_as_the_clamped_spline_does(folder: Path) -> None:
    waypoints = make("waypoints", folder, file="way.csv")
    knots = np.array([0.5, 1.0, 2.5, 3.0])
    rows = np.array([[1, 0], [2, 0.5], [1.5, -1], [1, 0]])
    assert waypoints.end == 3.0
    spline = CubicSpline(knots, rows, bc_type="clamped")
    times = np.linspace(0.5, 2.999, 77)
    motion = table(waypoints, times)
    for k, key in enumerate(KEYS[:3]):
        np.testing.assert_allclose(motion[key], spline(times, k), atol=1e-12)
    np.testing.assert_allclose(table(waypoints, knots)["position"], rows, atol=1e-14)


def test_waypoints_rest_before_the_first_and_after_the_last(folder: Path) -> None:
    waypoints = make("waypoints", folder, file="way.csv")
    for t, row in ((0.0, [1, 0]), (0.499, [1, 0]), (3.0, [1, 0]), (9.0, [1, 0])):
        sample = waypoints.sample(t)
        np.testing.assert_array_equal(sample["position"], row)
        np.testing.assert_array_equal(sample["velocity"], 0.0)
        np.testing.assert_array_equal(sample["acceleration"], 0.0)
    np.testing.assert_allclose(waypoints.sample(0.5)["velocity"], 0.0, atol=1e-15)


def circle(folder: Path, count: int) -> Trajectory:
    """Of as many waypoints, in 20 s."""
    times = np.linspace(0.0, 20.0, count)
    rows = "".join(f"{float(t)!r},{math.sin(t)!r},{math.cos(t)!r}\n" for t in times)
    (folder / "long.csv").write_text("t,shoulder,elbow\n" + rows)
    return make("waypoints", folder, file="long.csv")


def test_two_hundred_waypoints_keep_the_precision(tmp_path: Path) -> None:
    waypoints = circle(tmp_path, 200)
    np.testing.assert_allclose(waypoints.sample(12.345)["position"], [math.sin(12.345), math.cos(12.345)], atol=1e-5)


def test_ten_thousand_waypoints_cost_a_few_comparisons_more_than_a_hundred(tmp_path: Path) -> None:
    waypoints = {count: circle(tmp_path, count) for count in (100, 10_000)}
    routines = [Routine(lambda t, w=w: w.sample(t)["position"], [()], "way") for w in waypoints.values()]
    few, many = (routine.operations for routine in routines)
    assert many == few + 7  # log2 of a hundred
    found = compile(routines[1], [ArrayPort("t", ())])(12.345)
    np.testing.assert_allclose(found, [math.sin(12.345), math.cos(12.345)], atol=1e-11)


def test_too_many_waypoints_are_refused_before_they_are_compiled(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(KINDS["waypoints"], "MOST_POSITIONS", 7)
    path = tmp_path / "long.csv"
    path.write_text("t,shoulder,elbow\n" + "".join(f"{k},0,0\n" for k in range(4)))
    words = refusal(make, "waypoints", tmp_path, file="long.csv")
    assert words == f"{path}:5: 4 rows for 2 joints are too many; keep 3 or fewer"


@pytest.mark.parametrize(("text", "messages"), GIVEN["errors_in_a_csv_file_are_reported"])
def test_errors_in_a_csv_file_are_reported(tmp_path: Path, text: str, messages: list[str]) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    caught = raised(InputError, make, "waypoints", tmp_path, file="bad.csv")
    errors = caught.errors if isinstance(caught, InputErrors) else [caught]
    assert [str(error) for error in errors] == [message.format(path) for message in messages]


def test_unreadable_files_are_reported(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "binary.csv").write_bytes(b"\x80\x04\x95\0\0")
    for name, what in {
        "none.csv": "no such file; known: binary.csv",
        "folder.csv": "cannot be read: it is a folder; give a file",
        "binary.csv": "is a pickle, which could run code; write it as CSV or Parquet",
    }.items():
        assert refusal(make, "waypoints", tmp_path, file=name) == f"{tmp_path / name}: {what}"


def test_a_byte_order_mark_is_no_part_of_the_header(tmp_path: Path) -> None:
    (tmp_path / "excel.csv").write_bytes(b"\xef\xbb\xbft,shoulder,elbow\r\n0,1,2\r\n1,2,3\r\n")
    assert make("waypoints", tmp_path, file="excel.csv").end == 1.0


def test_waypoints_are_read_from_files_only(tmp_path):
    """A FIFO without a writer would never end."""
    os.mkfifo(tmp_path / "fifo")
    for path, kind in {tmp_path / "fifo": "a FIFO", tmp_path: "a folder"}.items():
        words = refusal(make, "waypoints", tmp_path, file=str(path))
        assert words == f"{path}: cannot be read: it is {kind}; give a file"


@pytest.mark.parametrize(
    ("between", "beyond", "resting"), [("spline", True, False), ("monotone", False, False), ("rest", False, True)]
)
def test_waypoints_with_dwells_overshoot_only_as_a_spline(
    tmp_path: Path, between: Any, beyond: bool, resting: bool
) -> None:
    rows = [-0.02, -0.14, -0.14, -0.02, -0.02, 0.05, 0.10]
    (tmp_path / "z.csv").write_text("t,z\n" + "".join(f"{k},{z}\n" for k, z in enumerate(rows)))
    path = waypoints.load(waypoints.Params(file="z.csv", between=between), ("z",), tmp_path, np.zeros(1))
    t = np.linspace(0.0, 4.0, 2001)
    z = np.array([path.sample(time)["position"][0] for time in t])
    assert bool(z.max() > -0.0199 or z.min() < -0.1401) == beyond
    np.testing.assert_allclose([path.sample(float(k))["position"][0] for k in range(7)], rows, atol=1e-15)
    velocities = [path.sample(float(k))["velocity"][0] for k in range(7)]
    assert velocities[0] == pytest.approx(0.0, abs=1e-12) and velocities[6] == pytest.approx(0.0, abs=1e-12)
    assert bool(abs(velocities[5]) < 1e-12) == resting
