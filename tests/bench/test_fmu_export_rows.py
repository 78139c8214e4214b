"""The row of FMUs: the FMU moves as the loop beside it."""

import sys

from cosim.bench import CASES, measure_case
from cosim.bench.paired_timing import QUICK

(ROW,) = (case for case in CASES if case.name == "fmu tick ur5_sim")


def test_an_fmu_is_measured_beside_the_loop():
    row = measure_case(ROW, QUICK)
    assert row.agreement is not None and row.agreement <= 1e-12
    assert row.ours is not None and row.other is not None and row.ours > 0.0 and row.other > 0.0


def test_without_an_importer_the_note_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "fmpy", None)
    row = measure_case(ROW, QUICK)
    assert row.note == "fmpy is not installed: pip install 'cosim[test]'"
