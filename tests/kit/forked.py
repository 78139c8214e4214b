"""A function in a copy of this process, so that what it changes of objects that many tests share is gone afterwards."""

from __future__ import annotations

import os
import pickle
import resource
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from cosim.apps.scenario.processes import fork

Found = TypeVar("Found")
LIMIT = 20  # s of processor time: what takes longer has no end


def forked(run: Callable[[], Found]) -> Found:
    """What run() returns in the copy; what it raises there is an AssertionError here, and that it does not end."""

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT))
        found.write_bytes(pickle.dumps(run()))

    with TemporaryDirectory() as folder:
        found, errors = Path(folder) / "found", Path(folder) / "errors"
        _, status = os.waitpid(fork(bounded, errors), 0)
        assert status == 0, errors.read_text() if errors.exists() else f"the copy ended with wait status {status}"
        return pickle.loads(found.read_bytes())
