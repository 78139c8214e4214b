"""The choice of the gate from what tests cost and run."""

import pytest

from tests.kit import gate
from tests.kit.coverage_by_test import Measured

A, B = "cosim/a/x.py", "drivers/b/x.py"


def bits(*lines: int) -> int:
    return sum(1 << line for line in lines)


TESTS = {
    "t/a.py::row[1]": Measured(0.01, {A: bits(1)}),
    "t/a.py::row[2]": Measured(0.01, {A: bits(1)}),
    "t/a.py::sample[x]": Measured(0.2, {A: bits(1, 2)}),
    "t/a.py::sample[y]": Measured(0.3, {A: bits(1, 2)}),
    "t/a.py::sample[z]": Measured(3.0, {A: bits(1, 2), B: bits(1)}),
    "t/a.py::long": Measured(5.0, {A: bits(1)}),
    "t/a.py::wide": Measured(4.0, {B: bits(*range(1, 9))}),
}


@pytest.mark.parametrize(
    ("needed", "left_out"),
    [
        # each line of b is run by `wide`, for less than with `sample[z]`; `long` runs nothing that others do not
        ([], {"sample[y]", "sample[z]", "long"}),
        (["t/a.py::long"], {"sample[y]", "sample[z]"}),
        (["t/a.py::gone"], {"sample[y]", "sample[z]", "long"}),
    ],
)
def test_what_runs_lines_that_few_others_run_is_chosen(needed, left_out):
    chosen = gate.choose(TESTS, [test for test in needed if test in TESTS])
    assert {test.partition("::")[2] for test in set(TESTS) - chosen} == left_out


def test_the_file_names_functions_that_are_not_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(gate, "FILE", tmp_path / "gate.json")
    gate.write_choice(gate.choice_of(TESTS, gate.choose(TESTS, []), ["t/a.py::wide"]))
    choice = gate.read_choice()
    assert choice.needed == ["t/a.py::wide"]
    left_out = {test for test in (*TESTS, "t/a.py::new", "t/a.py::sample[new]") if choice.leaves_out(test)}
    assert left_out == {f"t/a.py::{test}" for test in ("sample[y]", "sample[z]", "sample[new]", "long")}
    assert '"[x]"' in (tmp_path / "gate.json").read_text()


def test_rooms():
    assert [gate.room_of(file) for file in (A, B)] == ["cosim/a", "drivers"]
    assert gate.all_lines(TESTS.values()) == {"cosim/a": 2, "drivers": 8}
