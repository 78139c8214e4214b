"""The options of commands that read tables of other programs."""

from __future__ import annotations

from collections.abc import Sequence

from cosim.core.errors import InputError
from cosim.core.tables.joint_columns import TableOptions

KEYS = ("--unit ", "--column ", "--topic")


def table_options(unit: Sequence[str], column: Sequence[str], topic: str | None) -> TableOptions:
    """Raises InputError for what is not NAME=VALUE."""
    return TableOptions(_pairs(unit, "--unit", "position=deg"), _pairs(column, "--column", "elbow=q2"), topic, KEYS)


def _pairs(texts: Sequence[str], option: str, example: str) -> dict[str, str]:
    found = dict[str, str]()
    for text in texts:
        name, sign, value = text.rpartition("=")
        if not sign or not name.strip() or not value.strip():
            raise InputError(f"expected NAME=VALUE such as {example}, got '{text}'", option)
        found[name.strip()] = value.strip()
    return found
