"""The bench: paired timing, rows, targets and peers; real rows agree with their peers."""

import gc
import math
import os

import numpy as np
import orjson
import pytest

import benchmarks as bench
from benchmarks import paired_timing, peers, report, robots
from benchmarks.paired_timing import Budget, Samples
from benchmarks.rows import BenchCase, BenchRow, Measurement, Target, measure_case
from cosim.core.errors import InputError, RunError
from tests.bench.named_rows import TINY


class FakeHost:
    """A clock that only work moves on, and work that notes itself."""

    def __init__(self):
        self.now, self.done = 0.0, []

    def clock(self):
        return self.now

    def work(self, name, seconds):
        def block(n):
            self.done.append((name, n))
            self.now += n * seconds

        return block


def case(name="a row", target=None, unit="us", measurement=None, **more):
    """A case that measures nothing and finds `measurement`."""
    return BenchCase(name, "this", lambda effort: measurement, "that", unit, target, **more)


def found(ours, other=None, **more):
    return Measurement(Samples(np.array(ours), None if other is None else np.array(other)), **more)


# --- timing ---------------------------------------------------------------------------------------


def test_both_run_alternately_in_blocks_of_the_given_length():
    host = FakeHost()
    a, b = host.work("a", 1e-6), host.work("b", 3e-6)
    samples = paired_timing.time_pairs(a, b, Budget(pairs=4, block=1e-3, starts=0), host.clock)
    assert host.done[-8:] == [("a", 1000), ("b", 333)] * 4
    np.testing.assert_allclose(samples.ours, [1e-6] * 4, rtol=1e-9)
    np.testing.assert_allclose(samples.other, [3e-6] * 4, rtol=1e-9)


def test_repetitions_are_found_by_doubling_and_are_at_least_one():
    host = FakeHost()
    assert paired_timing.repetitions(host.work("a", 1e-5), 1e-3, host.clock) == 100
    assert [n for _, n in host.done] == [1, 2, 4, 8, 16, 32, 64]
    assert paired_timing.repetitions(host.work("slow", 5.0), 1e-3, host.clock) == 1


def test_the_least_of_twenty_blocks_is_enough_to_choose_by():
    host = FakeHost()
    seconds = paired_timing.shortest_time(host.work("a", 1e-5), Budget(pairs=0, block=1e-3, starts=0), host.clock)
    assert seconds == pytest.approx(1e-5)
    assert host.done[-21:] == [("a", 64), *[("a", 100)] * 20]


def test_units_of_a_repetition():
    samples = Samples(np.array([6.0]), np.array([8.0])).per(3, 2)
    assert (samples.ours[0], samples.other[0]) == (2.0, 4.0)
    assert Samples(np.array([6.0])).per(3, 2).other is None


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system cannot bind threads")
def test_timing_is_undisturbed_and_leaves_everything_as_it_was():
    processors = os.sched_getaffinity(0)
    assert gc.isenabled()
    with pytest.raises(KeyError), paired_timing.undisturbed():
        assert not gc.isenabled()
        assert os.sched_getaffinity(0) == {max(processors)}
        raise KeyError
    assert gc.isenabled()
    assert os.sched_getaffinity(0) == processors


def test_garbage_collection_that_was_off_stays_off():
    gc.disable()
    try:
        with paired_timing.undisturbed():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


# --- rows -----------------------------------------------------------------------------------------


def test_a_row_holds_medians_and_the_quotients_of_neighbours():
    result = found([1e-6, 2e-6, 4e-6], [4e-6, 6e-6, 20e-6], agreement=1e-12, note="so")
    row = measure_case(case(measurement=result), TINY)
    assert (row.ours, row.other, row.runs) == (pytest.approx(2.0), pytest.approx(6.0), 3)
    assert row.ratio == pytest.approx(4.0)
    assert row.quartiles == pytest.approx((3.5, 4.5))
    assert (row.agreement, row.note) == (1e-12, "so")


def test_growth_is_the_other_way_round():
    row = measure_case(case(measurement=found([3e-6], [2e-6], growth=True)), TINY)
    assert row.ratio == pytest.approx(1.5)
    assert row.figures()["ratio_is"] == "ours / other"


def test_a_row_without_a_peer_has_no_ratio():
    row = measure_case(case(unit="ms", measurement=found([0.25, 0.5])), TINY)
    assert (row.ours, row.other, row.ratio, row.quartiles) == (375.0, None, None, None)
    assert row.figures()["ratio_is"] is None


FASTER, SOON = Target("ratio", 3.0), Target("ours", 2.0, at_most=True)


@pytest.mark.parametrize(
    ("target", "figures", "met"),
    [
        (None, {"ours": 1.0, "ratio": 9.0}, None),
        (FASTER, {"ratio": 3.0}, True),
        (FASTER, {"ratio": 2.999}, False),
        (FASTER, {"ratio": 9.0, "agreement": 1e-12}, True),
        (FASTER, {"ratio": 9.0, "agreement": 1e-8}, False),
        (FASTER, {"ratio": 9.0, "agreement": math.nan}, False),
        (FASTER, {"note": "not installed"}, None),
        (SOON, {"ours": 2.0}, True),
        (SOON, {"ours": 2.001, "ratio": 0.1}, False),
    ],
)
def test_targets(target, figures, met):
    assert BenchRow(case(target=target), **figures).met is met


def test_a_row_as_json():
    row = BenchRow(case("x", FASTER), 1.0, 4.0, 4.0, (3.5, 4.5), 1e-12, runs=7, note="so")
    assert row.figures() == {
        "name": "x",
        "about": "this",
        "against": "that",
        "unit": "us",
        "ours": 1.0,
        "other": 4.0,
        "ratio": 4.0,
        "ratio_quartiles": (3.5, 4.5),
        "ratio_is": "other / ours",
        "agreement": 1e-12,
        "target": 3.0,
        "rule": "ratio >= target",
        "met": True,
        "failed": False,
        "runs": 7,
        "note": "so",
    }


def test_a_row_as_text():
    row = BenchRow(case(target=FASTER), 0.23456, 1234.5, 4.0, agreement=2e-16, note="so")
    assert report.row_cells(row) == ["0.235 µs", "1.23e+03 µs", "4.00 ×", "≥ 3 ×"]
    assert report.describe_row(row) == "this; other: that; agree to 2e-16; so"
    row = BenchRow(BenchCase("x", "this", lambda effort: found([1.0]), unit="s", target=SOON), 1.5)
    assert report.row_cells(row) == ["1.5 s", "", "", "≤ 2 s"]
    assert report.describe_row(row) == "this"
    assert report.row_cells(BenchRow(case())) == ["", "", "", ""]


def test_every_row_has_a_name_and_words_of_its_own():
    names = [case.name for case in bench.CASES]
    assert len(set(names)) == len(names)
    assert len({(case.about, case.against) for case in bench.CASES}) == len(names)


def test_differences_are_relative_to_the_largest_value():
    assert peers.relative_difference(np.array([4.0, -1.0]), np.array([4.0, 0.0])) == 0.25


# --- the command ----------------------------------------------------------------------------------


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    """`python -m benchmarks` over given cases, as quick as can be: (what JSON says, what was printed)."""
    monkeypatch.setattr(bench, "QUICK", TINY)

    def run(cases, only=None):
        monkeypatch.setattr(bench, "CASES", tuple(cases))
        bench.main(tmp_path / "out.json", only, True)
        return orjson.loads((tmp_path / "out.json").read_bytes()), capsys.readouterr().out

    return run


GOOD = case("good", FASTER, measurement=found([1e-6], [4e-6]))
BAD = case("bad", FASTER, measurement=found([1e-6], [2e-6]))


def test_the_document(run):
    document, printed = run([GOOD, case("plain", measurement=found([1e-6]))])
    assert set(document) == {"machine", "versions", "quick", "rows"}
    assert set(document["machine"]) == {"system", "processor", "processors", "load_average"}
    assert document["versions"]["numpy"] == np.__version__
    assert document["quick"] is True
    assert [(row["name"], row["met"]) for row in document["rows"]] == [("good", True), ("plain", None)]
    line = next(line.split() for line in printed.splitlines() if line.startswith(" good"))
    assert line == ["good", "1", "µs", "4", "µs", "4.00", "×", "≥", "3", "×", "met"]
    assert "good: this; other: that\n" in printed


def test_a_package_that_is_not_installed_has_no_version(monkeypatch):
    monkeypatch.setattr(report, "PACKAGES", ("no-such-package",))
    assert report.versions()["no-such-package"] is None


def test_only_rows_with_the_given_name(run):
    document, _ = run([GOOD, BAD], "goo")
    assert [row["name"] for row in document["rows"]] == ["good"]


def test_an_unknown_name_is_a_mistake(run):
    with pytest.raises(InputError) as caught:
        run([GOOD, BAD], "god")
    assert str(caught.value) == "--only: no row has 'god' in its name; did you mean 'good'?"


def test_a_missed_target_fails_the_run_when_all_is_written(run, tmp_path, capsys):
    with pytest.raises(RunError) as caught:
        run([GOOD, BAD, case("plain", measurement=found([1e-6]))])
    assert str(caught.value) == "bench: 1 of 2 targets missed: bad"
    rows = orjson.loads((tmp_path / "out.json").read_bytes())["rows"]
    assert [row["met"] for row in rows] == [True, False, None]
    assert "missed" in capsys.readouterr().out


def test_an_error_costs_its_row_alone_and_is_written_as_it_comes(run, tmp_path, capsys):
    seen = []

    def measure(effort):
        seen.append([row["name"] for row in orjson.loads((tmp_path / "out.json").read_bytes())["rows"]])
        return [][-1]

    with pytest.raises(RunError) as caught:
        run([GOOD, BenchCase("rotten", "this", measure, target=FASTER), case("plain", measurement=found([1e-6]))])
    assert str(caught.value) == "bench: 1 of 3 rows failed: rotten"
    assert seen == [["good"]]
    rows = orjson.loads((tmp_path / "out.json").read_bytes())["rows"]
    assert [(row["name"], row["failed"], row["met"]) for row in rows] == [
        ("good", False, True),
        ("rotten", True, None),
        ("plain", False, None),
    ]
    assert rows[1]["note"].startswith("failed: IndexError: list index out of range (")
    printed = capsys.readouterr().out
    assert next(line.split() for line in printed.splitlines() if line.startswith(" rotten"))[-1] == "failed"


def test_a_missing_peer_fails_nothing(run):
    def measure(effort):
        raise peers.MissingPeer("pinocchio")

    document, printed = run([BenchCase("peerless", "this", measure, target=FASTER)])
    assert document["rows"][0]["met"] is None
    assert document["rows"][0]["note"] == "pinocchio is not installed: pip install 'cosim[test]'"
    assert "not measured" in printed
    assert "peerless: this; pinocchio is not installed: pip install 'cosim[test]'\n" in printed


def test_json_alone_on_stdout(monkeypatch, capsys):
    monkeypatch.setattr(bench, "CASES", (GOOD,))
    bench.main("-", None, True)
    assert orjson.loads(capsys.readouterr().out)["rows"][0]["name"] == "good"


def test_mistakes_are_found_before_anything_is_measured(run, monkeypatch, tmp_path, said):
    def measure(effort):
        raise AssertionError("measured")

    cases = [BenchCase("x", "this", measure)]
    with monkeypatch.context() as patch, pytest.raises(InputError) as caught:
        patch.setenv("COSIM_INTERPRET", "1")
        run(cases)
    said(caught.value)
    with monkeypatch.context() as patch, pytest.raises(InputError) as caught:
        patch.setattr(robots, "SAMPLE_RIG", "rigs/no.yaml")
        run(cases)
    said(caught.value)
    with pytest.raises(InputError, match="there is no folder"):
        bench.main(tmp_path / "no" / "out.json", None, True)


def test_the_rig_at_hand_comes_first(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    elsewhere = robots.sample_rig()
    (tmp_path / "rigs").mkdir()
    (tmp_path / robots.SAMPLE_RIG).touch()
    assert robots.sample_rig() == tmp_path / robots.SAMPLE_RIG != elsewhere


# --- real rows ------------------------------------------------------------------------------------


def test_a_real_row_from_end_to_end(run):
    document, _ = run(bench.CASES, "Inverse_Dynamics UR5")
    (row,) = document["rows"]
    assert row["agreement"] < 1e-12
    assert (row["runs"], row["unit"], row["target"], row["met"], row["note"]) == (2, "us", None, None, None)
    assert row["ours"] > 0 and row["other"] > 0 and row["ratio"] > 0


def test_a_new_process_that_fails_reports_why(tmp_path):
    with pytest.raises(RunError) as caught:
        bench.rows_start.fresh(("raise SystemExit('no luck')",), tmp_path / "file", tmp_path)
    assert str(caught.value) == f"{tmp_path}/file: a new process failed: no luck"


def test_a_row_on_request_is_measured_only_by_its_name():
    every, chosen = ({case.name for case in bench.select(bench.CASES, only)} for only in (None, "1E8"))
    on_request = {case.name for case in bench.CASES if case.on_request}
    assert chosen == {"run of 1e8 ticks"} <= on_request
    assert every == {case.name for case in bench.CASES} - on_request
