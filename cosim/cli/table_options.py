"""The options of commands that read tables of other programs."""

from __future__ import annotations

from collections.abc import Sequence

from cosim.core.errors import InputError
from cosim.core.tables.options import COMMAND_KEYS, TableOptions


def table_options(
    unit: Sequence[str], column: Sequence[str], topic: str | None, gain: Sequence[str] = ()
) -> TableOptions:
    """Raises InputError for what is not NAME=VALUE."""
    units, columns = _pairs(unit, "--unit", "position=deg"), _pairs(column, "--column", "elbow=q2")
    return TableOptions(units, columns, topic, COMMAND_KEYS, _pairs(gain, "--gain", "'effort=1.4,0.7 N*m/A'"))


def _pairs(texts: Sequence[str], option: str, example: str) -> dict[str, str]:
    found = dict[str, str]()
    for text in texts:
        name, sign, value = text.rpartition("=")
        if not sign or not name.strip() or not value.strip():
            raise InputError(f"expected NAME=VALUE such as {example}, got '{text}'", option)
        found[name.strip()] = value.strip()
    return found
