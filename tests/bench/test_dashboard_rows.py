"""The rows of the dashboard and of pages where there is no browser."""

import shutil

import pytest

from cosim.bench.paired_timing import QUICK
from cosim.bench.rows import measure_case
from cosim.bench.rows_dashboard import CASES
from cosim.bench.rows_deploy_page import CASES as PAGE_CASES

IN_BROWSER = (*CASES, *(case for case in PAGE_CASES if case.unit != "kB"))


@pytest.mark.parametrize("case", IN_BROWSER, ids=lambda case: case.name)
def test_without_a_browser_a_row_names_what_is_missing(case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    row = measure_case(case, QUICK)
    assert (row.ours, row.met, row.note) == (None, None, "no browser: install chromium")
