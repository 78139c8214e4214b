"""Tables of fault codes, and their texts in a rig: `7: overcurrent; check the motor's phases`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

UNKNOWN = 255  # code of an emulated drive for a fault that the texts do not name

FaultTexts = Mapping[Any, Any]  # as read from a rig
FaultTable = Mapping[int, tuple[str, str]]  # code -> name, fix


def check_fault_texts(texts: FaultTexts | None) -> None:
    """Raises ValueError for an invalid code, and for one without a text."""
    for code, text in (texts or {}).items():
        if not isinstance(text, str) or not str(code).isdecimal():
            raise ValueError(f"'faults' has a text for each fault code; '{code}' has none")


def fault_table(texts: FaultTexts, manual: str) -> FaultTable:
    """manual: where a fix is that the rig does not give."""
    parts = {int(code): text.partition("; ") for code, text in texts.items()}
    return {code: (name, fix or f"see {manual}") for code, (name, _, fix) in parts.items()}


def code_of(fault: str, table: FaultTable) -> int:
    """The code of an emulated drive's fault: the one with the word in its name; 0 for no fault."""
    return next((code for code, (name, _) in table.items() if fault in name.lower()), UNKNOWN) if fault else 0
