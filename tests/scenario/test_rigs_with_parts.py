"""Scenarios of rigs with parts: compiled ones only, and the faults that their joints can have."""

import shutil

import pytest

from cosim.errors import InputError, InputErrors
from cosim.rig.rig import Rig
from cosim.scenario.faulty_ticks import SimulatedFaults
from cosim.scenario.runs import ScenarioFiles
from cosim.scenario.stand import in_simulated_time
from tests.scenario.helpers import RIGS, fault, file_of, results_of, scenario


@pytest.fixture
def winch(tmp_path):
    for name in ("winch.yaml", "hoisted_load.py"):
        shutil.copy(RIGS / "cosimulation" / name, tmp_path)
    return tmp_path / "winch.yaml"


def test_an_encoder_that_jumps(winch, tmp_path):
    jump, hot = fault("encoder_jump", joint="winch", size=1.0), fault("hot_winding", joint="winch")
    scenarios = {
        "jump": scenario("stopped within 1 tick by tracking of winch", jump),
        "hot": scenario("stopped within 1 tick by temperature of winch", hot),
    }
    limits = "joints.winch.limits.tracking=0.5 rad", "joints.winch.limits.temperature=100 degC"
    assert {name: each.failures for name, each in results_of(winch, tmp_path, scenarios, *limits).items()} == {
        "jump": (),
        "hot": (),
    }


def test_faults_that_a_rig_with_parts_cannot_have(winch, tmp_path, said):
    kinds = "brown_out", "power_loss", "motor_fault"
    file = file_of(tmp_path, {kind: scenario("completed", fault(kind, joint="winch")) for kind in kinds})
    spec, scenarios = ScenarioFiles(winch, (file,)).read()
    rig = Rig(in_simulated_time(spec))
    for each in scenarios:
        (wrong,) = each.faults
        with pytest.raises(InputError) as error:
            SimulatedFaults(rig, [(wrong.spec, each.place((*wrong.key, "joint")))])
        said(error.value)


def test_a_part_in_python(winch, tmp_path, said):
    """Forked processes would share what it holds."""
    file = tmp_path / "hoisted_load.py"
    text = file.read_text()
    assert 'x["stretch"]' in text
    file.write_text(text.replace('x["stretch"]', 'float(x["stretch"])'))
    with pytest.raises(InputErrors) as error:
        results_of(winch, tmp_path, {"one": scenario("completed", fault("encoder_nan", joint="winch"))})
    said(error.value)
