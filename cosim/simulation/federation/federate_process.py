"""The process of a federate that a run has started."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from cosim.core.errors import RunError


class FederateProcess:
    """command: its words."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self.name = name
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 closed by `end`
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},  # the same modules
            process_group=0,  # Ctrl-C reaches the run only, which then ends this process
        )

    def check(self, t: float) -> None:
        """Raises RunError if it has ended."""
        code = self._process.poll()
        if code is not None:
            self._errors.seek(0)
            lines = self._errors.read().decode(errors="replace").splitlines()
            why = f": {lines[-1]}" if lines else ""
            what = f"the federate '{self.name}' has ended with exit code {code} at t = {t:.6g} s{why}"
            raise RunError(f"{what}; look for what ended it, and run again")

    def end(self, patience: float) -> None:
        """Wait for its end so long [s], then kill it."""
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()
