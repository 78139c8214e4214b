"""Mistakes in rigs with drives, mistakes.yaml: one line each, at its place."""

from pathlib import Path

import pytest
import yaml

from tests.conformance.families import Case
from tests.drivers.loading import mistakes_of

FILE = yaml.safe_load(Path(__file__).with_name("mistakes.yaml").read_text())
CASES = {
    f"{family} {name}": (family, change) for family, table in FILE.items() for name, change in table["cases"].items()
}


@pytest.mark.parametrize(("family", "change"), CASES.values(), ids=CASES)
def test_a_mistake_is_one_line_at_its_place(family, change, tmp_path, said):
    table = FILE[family]
    of_joint, of_driver = (change, {}) if table["of"] == "joint" else ({}, change)
    a = {key: value for key, value in (table["a"] | of_joint).items() if value is not None}
    (what,) = mistakes_of(tmp_path, Case(family, table["line"], stepped=True), a, table["b"], **of_driver)
    assert what.startswith("drivers[0].joints.a" if of_joint else "drivers[0]")
    assert not of_driver or next(iter(of_driver)) in what
    said(what)
