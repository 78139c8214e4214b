"""The page of the signals says of every signal what its declaration says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cosim.output.signal_charts import ORDER, STYLES
from cosim.simulation.plant.recorded_contacts import OF_A_CONTACT, OF_THE_SOLVER
from cosim.simulation.plant.recorded_signals import ENERGIES, STEPS
from cosim.simulation.tick.coupled_plant import OF_A_BOND, STEP_SIGNALS
from cosim.simulation.tick.signals import JOINT_SIGNALS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "signals.md"
ROW = re.compile(r"^\| `(?P<name>[^`]+)` \| .*? \| (?P<meaning>.*) \|$", re.MULTILINE)
LINK = re.compile(r"\[(.*?)\]\(.*?\)")
TABLES = {"<joint>": JOINT_SIGNALS, "energy": ENERGIES, "steps": STEPS, "coupling": STEP_SIGNALS, "<bond>": OF_A_BOND}
TABLES |= {"<contact>": OF_A_CONTACT, "contacts": OF_THE_SOLVER}
DECLARED = {f"{owner}/{what}": signal for owner, table in TABLES.items() for what, signal in table.items()}


@pytest.mark.parametrize("name", DECLARED)
def test_the_page_says_what_is_declared(name: str):
    """With the unit at the end, where it isn't that of the joint."""
    rows = {match["name"]: LINK.sub(r"\1", match["meaning"]) for match in ROW.finditer(PAGE.read_text("utf-8"))}
    unit = DECLARED[name].unit.replace("degC", "°C")
    of_its_own = unit != "1" and not unit.startswith("joint")
    assert rows[name] == DECLARED[name].meaning + (f", {unit}" if of_its_own else "")


def test_the_page_has_the_charts_of_a_joint_and_the_styles_of_their_curves():
    text = PAGE.read_text("utf-8")
    charts = dict(
        re.findall(r"^\| `([^`]+)` \| ([^|]+) \|$", text.split("## Charts")[1].split("\n## ")[0], re.MULTILINE)
    )
    assert list(charts)[: len(ORDER)] == list(ORDER)
    for title in ORDER:
        signals = [name for name, signal in JOINT_SIGNALS.items() if signal.chart == title]
        assert set(signals) <= set(re.findall(r"`(\w+)`", charts[title]))
    looks = {style.label: style for style in STYLES.values()}
    assert {label: charts[label].endswith("dashed") for label in list(charts)[len(ORDER) :]} == {
        label: style.dashed for label, style in looks.items()
    }
