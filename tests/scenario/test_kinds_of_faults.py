"""Every kind of fault has an effect: how the run ends with it, an expectation that holds, and ones that fail."""

from pathlib import Path

import pytest
import yaml

from cosim.execution.hardware.emulation.fault_injection import KINDS
from tests.scenario.helpers import CAN, SIM, fault, results_of, scenario

FILE = yaml.safe_load(Path(__file__).with_name("kinds_of_faults.yaml").read_text())
DRIVES, SIMULATED, OTHER_ENDS = FILE["drives"], FILE["simulated"], FILE["other_ends"]
LIMITS = ("joints.all.limits.tracking=5 deg", "joints.all.limits.temperature=100 degC")


def _faulty(table, kind, expect, **keys):
    return scenario(expect, fault(kind, **table[kind].get("fault", {})), **keys)


def _given(table, **keys):
    return {kind: _faulty(table, kind, row["expect"], **keys) for kind, row in table.items()}


@pytest.fixture(scope="module")
def of_drives(tmp_path_factory):
    others = {f"{kind} {expect}": _faulty(DRIVES, kind, expect) for kind, expect, _ in OTHER_ENDS}
    return results_of(CAN, tmp_path_factory.mktemp("drives"), _given(DRIVES) | others)


@pytest.fixture(scope="module")
def of_simulated_joints(tmp_path_factory):
    return results_of(SIM, tmp_path_factory.mktemp("simulated"), _given(SIMULATED, duration=0.7), *LIMITS)


def test_the_tables_are_complete():
    assert DRIVES.keys() == KINDS.keys()
    assert SIMULATED.keys() == {kind for kind, row in KINDS.items() if row.simulated}


def _check(result, happened="", failure="", **_):
    assert result.happened.startswith(happened), result
    assert [each[: len(failure)] for each in result.failures] == [failure] * bool(failure), result


@pytest.mark.parametrize("kind", DRIVES)
def test_a_fault_of_drives_has_its_reaction_and_no_other(of_drives, kind):
    _check(of_drives[kind], **DRIVES[kind])


@pytest.mark.parametrize(("kind", "expect", "failure"), OTHER_ENDS)
def test_another_end_than_the_expected_one_is_a_failure(of_drives, kind, expect, failure):
    _check(of_drives[f"{kind} {expect}"], failure=failure)


@pytest.mark.parametrize("kind", SIMULATED)
def test_a_fault_of_simulated_joints_has_its_reaction_and_no_other(of_simulated_joints, kind):
    _check(of_simulated_joints[kind], **SIMULATED[kind])
