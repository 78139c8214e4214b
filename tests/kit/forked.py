"""A function in a copy of this process, so that what it changes of objects that many tests share is gone afterwards."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from cosim.scenario.processes import fork

Found = TypeVar("Found")


def forked(run: Callable[[], Found]) -> Found:
    """What run() returns in the copy; what it raises there is an AssertionError here."""
    with TemporaryDirectory() as folder:
        found, errors = Path(folder) / "found", Path(folder) / "errors"
        _, status = os.waitpid(fork(lambda: found.write_bytes(pickle.dumps(run())), errors), 0)
        assert status == 0, errors.read_text() if errors.exists() else f"the copy ended with status {status}"
        return pickle.loads(found.read_bytes())
