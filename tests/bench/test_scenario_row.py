"""The row of scenarios: all kinds of faults, and the same ones each time."""

from __future__ import annotations

import yaml

from benchmarks import rows_scenarios
from benchmarks.rows_scenarios import COUNT, RIG, scenarios_of
from cosim.apps.scenario.command import ScenarioFiles
from cosim.execution.hardware.emulation.fault_injection import KINDS
from tests.docs.documents import ROOT


def test_the_scenarios_have_every_kind_of_fault_and_can_be_read(tmp_path):
    file = tmp_path / "scenarios.yaml"
    file.write_text(yaml.safe_dump({"scenario": dict(scenarios_of(COUNT))}))
    _, found = ScenarioFiles(ROOT / RIG, (file,)).read()
    assert len(found) == COUNT
    assert {fault.spec.kind for scenario in found for fault in scenario.faults} == set(KINDS)
    assert list(scenarios_of(COUNT)) == list(scenarios_of(COUNT))


def test_the_target_is_that_of_two_cores():
    (case,) = rows_scenarios.CASES
    assert (case.name, case.target.bound, case.target.at_most, rows_scenarios.CORES) == ("200 scenarios", 60.0, True, 2)
