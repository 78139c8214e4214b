"""One mistake in a rig at a time, of mistakes.yaml: one line at its place, or one for each thing that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from cosim import load_rig
from cosim.core.errors import CosimError
from cosim.rig.sections.rig_spec import read_rig
from tests.kit.refusals import raised

FILE = yaml.load(Path(__file__).with_name("mistakes.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)
HEADS, TABLES = FILE["heads"], FILE["tables"]


def cases():
    for name, table in TABLES.items():
        given = table["cases"]
        for k, case in enumerate(given.splitlines() if isinstance(given, str) else given):
            yield pytest.param(name, case, id=f"{name}-{k if len(case.splitlines()) > 1 else case.strip()}")


@pytest.mark.usefixtures("four_cpus")
@pytest.mark.parametrize(("name", "case"), list(cases()))
def test_a_mistake_is_refused_at_its_place(request, tmp_path, monkeypatch, said, name, case):
    table = TABLES[name]
    text = HEADS.get(table.get("head"), "") + table.get("rig", "")
    overrides = [case] if table.get("set") else []
    if table.get("stand_ins"):
        request.getfixturevalue("rigs")
    monkeypatch.chdir(tmp_path)
    Path("rig.yaml").write_text(text.replace("CASE", case))
    caught = raised(CosimError, read_rig if table.get("stand_ins") else load_rig, "rig.yaml", overrides)
    place = f"--set {case}: " if overrides else f"rig.yaml:{table.get('place', '')}"
    assert all(line.startswith(place) for line in str(caught).splitlines())
    said(caught)
