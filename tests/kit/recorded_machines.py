"""Recordings of real machines, in a folder beside the checkout; their licences differ, so none is in the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[3] / "shared" / "data"


def recorded(machine: str, name: str) -> Path:
    """A file of a machine. Skips the test where the folder is absent."""
    path = FOLDER / machine / name
    if not path.exists():
        pytest.skip(f"the recordings of real machines are not beside the checkout: {machine}/{name}")
    return path
