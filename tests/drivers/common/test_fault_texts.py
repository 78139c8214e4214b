"""Fault codes whose texts are in the rig."""

import pytest

from cosim.drivers.common.fault_texts import UNKNOWN, check_fault_texts, code_of, fault_table

TEXTS = {"3": "Overcurrent; check the phases for a short", 7: "encoder"}


def test_a_text_is_a_name_and_a_fix():
    check_fault_texts(TEXTS)
    assert fault_table(TEXTS, "its manual") == {
        3: ("Overcurrent", "check the phases for a short"),
        7: ("encoder", "see its manual"),
    }


@pytest.mark.parametrize("texts", [{"high": "overcurrent"}, {-1: "overcurrent"}, {"7": 7}])
def test_a_code_without_a_text_is_a_mistake(texts):
    (code,) = texts
    with pytest.raises(ValueError, match=f"^'faults' has a text for each fault code; '{code}' has none$"):
        check_fault_texts(texts)


def test_an_emulated_drive_reports_the_code_whose_name_has_its_fault():
    table = fault_table({**TEXTS, 5: "brake; check the encoder's cable"}, "")
    assert [code_of(fault, table) for fault in ("overcurrent", "encoder", "undervoltage", "")] == [3, 7, UNKNOWN, 0]
