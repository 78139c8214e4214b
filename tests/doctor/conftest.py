"""Fixtures of the tests in this folder."""

from __future__ import annotations

import pytest

from tests.doctor.doctor_helpers import GOOD


@pytest.fixture
def machine(tmp_path):
    """Writes the files of `GOOD` with others in their places, None for one that there is not; the root."""

    def write(**others):
        root = tmp_path / "root"
        for name, text in {**GOOD, **others}.items():
            if text is not None:
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return root

    return write
