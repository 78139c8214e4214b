"""Parts of a rig that other processes have computed from the same inputs, in the cache folder."""

from __future__ import annotations

import io
import os
import pickle
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from cosim.core.compile.jit import cached, store
from cosim.core.trust.private_cache import private_cache
from cosim.rig.input_tracking import Inputs, InputTracker

T = TypeVar("T")

SUFFIX = ".parts"
MOST_KEPT = 256  # files in the cache folder; those that were not used for the longest time are removed


class CachedParts:
    """Parts by name: computed once in this process, and kept for others where the inputs of the rig are known."""

    def __init__(self, key: str = "", inputs: Inputs | None = None, parts: dict[str, Any] | None = None) -> None:
        """key: of the file in the cache folder, none for parts of this process alone; inputs, parts: that are known."""
        self._key, self._inputs, self._parts = key, inputs, {} if parts is None else parts
        self._tracker, self._saved = InputTracker(), len(self._parts)

    @classmethod
    def of(cls, key: str) -> CachedParts:
        """Those under this key in the cache folder, if the inputs are as they were; else none yet."""
        name = f"{key}{SUFFIX}"
        with suppress(Exception):  # another program may have written anything there
            stored = io.BytesIO(zlib.decompress(cached(name) or b""))
            inputs: Inputs = pickle.load(stored)
            if key and inputs.unchanged and inputs.alone_with(()):
                os.utime(_folder() / name)
                return cls(key, inputs, pickle.load(stored))
        return cls(key)

    def __contains__(self, name: str) -> bool:
        return name in self._parts

    @property
    def files(self) -> dict[str, str]:
        """Absolute path -> hash of the files that the parts were computed from, so far."""
        return {**({} if self._inputs is None else self._inputs.files), **self._tracker.files}

    @property
    def unchanged(self) -> bool:
        """Whether the inputs have not changed since the parts were cached."""
        return self._inputs is not None and self._inputs.unchanged

    def tracked(self) -> InputTracker:
        """A block in which files that are read are inputs of the parts."""
        return self._tracker

    def get(self, name: str, make: Callable[[], T]) -> T:
        """The part of this name; `make` computes it where it is not known."""
        if name not in self._parts:
            with self._tracker:
                self._parts[name] = make()
        return self._parts[name]

    def of_variant(self) -> CachedParts:
        """None yet, of the same files, which are not kept for other processes."""
        found = CachedParts("", self._inputs)
        found._tracker = self._tracker
        return found

    def forget(self) -> None:
        """Keep no further parts: the rig no longer matches its inputs."""
        self._key = ""

    def save(self) -> None:
        """Save the parts that are known now, unless their inputs are not all known or have changed."""
        if self._key and len(self._parts) > self._saved and (inputs := self._tracker.inputs()) is not None:
            stored = pickle.dumps(inputs) + pickle.dumps(self._parts)
            store(f"{self._key}{SUFFIX}", zlib.compress(stored, level=1))
            self._saved = len(self._parts)
            _remove_old()


def _folder() -> Path:
    """Raises OSError where nothing is kept."""
    if (folder := private_cache()) is None:
        raise FileNotFoundError
    return folder


def _remove_old() -> None:
    with suppress(OSError):  # another process removes them too
        kept = sorted(_folder().glob(f"*{SUFFIX}"), key=lambda path: path.stat().st_mtime, reverse=True)
        for path in kept[MOST_KEPT:]:
            path.unlink(missing_ok=True)
