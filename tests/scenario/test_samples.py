"""The sample scenarios hold."""

import pytest

from cosim.scenario.runs import ScenarioFiles, run_scenarios
from tests.scenario.helpers import RIGS


@pytest.mark.parametrize("name", ["arm_can", "arm_sim", "arm_twin"])
def test_the_sample_scenarios_hold(name):
    results = run_scenarios(ScenarioFiles(RIGS / f"{name}.yaml", (RIGS / "scenarios" / f"{name}.yaml",)), jobs=2)
    assert len(results) >= 4 and {result.name: result.failures for result in results if not result.ok} == {}
