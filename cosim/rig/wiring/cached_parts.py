"""Parts of a rig that other processes have computed from the same inputs, in the cache folder, and lazy parts of a rig
of which no more is known than a run of compiled ticks needs."""

from __future__ import annotations

import io
import os
import pickle
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from cosim.core.compile.jit import cached, store
from cosim.core.trust.private_cache import private_cache
from cosim.rig.reading.input_tracking import Inputs, InputTracker

if TYPE_CHECKING:
    from cosim.rig.sections.rig_spec import RigSpec
    from cosim.simulation.tick.tick_model import TickModel

T = TypeVar("T")

SUFFIX = ".parts"
MOST_KEPT = 256  # files in the cache folder; those that were not used for the longest time are removed

KNOWN = "known"  # name of this data among the cached parts
WARNINGS = "warnings"  # name of what the rig warns of, which depends on its parameters
_SPEC = ("name", "path", "description", "drivers")
_SECTIONS = {
    "mechanism": ("warnings",),
    "schedule": ("step_ns", "rate", "duration_ns", "blend", "pacing"),
    "keep": ("signals", "every", "last", "budget", "file"),
    "telemetry": (
        *("publish", "rate", "signals", "decimation", "format", "key"),
        *("control", "control_timeout", "control_lost"),
    ),
    "recording": ("encoding", "numbers", "split_size", "split_time"),
    "guard": ("estop", "watchdog"),
}
_TICK_MODEL = (
    *("program", "layout", "row", "step", "step_ns", "nv", "deceleration", "has_controlled_stop"),
    *("untraceable", "python_loops", "native_loop", "coupled_in_python"),
)
_LIMITS = ("velocity",)


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

    def drop(self, name: str) -> None:
        """Compute this part anew when it is needed next."""
        self._parts.pop(name, None)

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


class LazyPart:
    """Some attributes of an object; the others come from the object itself, which is then made."""

    def __init__(self, known: Mapping[str, Any], complete: Callable[[], Any]) -> None:
        self.__dict__.update(known)
        self._complete = complete

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what copy and pickle look for
            raise AttributeError(name)
        return getattr(self._complete(), name)


def known_parts(spec: RigSpec, model: TickModel) -> dict[str, Any]:
    """What a run of compiled ticks needs of a rig, as plain data; for `lazy_parts`."""
    return {
        "joints": tuple(spec.joints),
        "spec": _picked(spec, _SPEC),
        "sections": {name: _picked(getattr(spec, name), keys) for name, keys in _SECTIONS.items()},
        "tick_model": _picked(model, _TICK_MODEL),
        "limits": _picked(model.limits, _LIMITS),
        "memory": model.memory(),
    }


def _picked(value: object, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names}


def lazy_parts(known: Mapping[str, Any], complete: Callable[[], Any]) -> tuple[RigSpec, TickModel]:
    """For `spec` and `tick_model` of a rig, from its known parts. complete: builds the rig."""

    def section(name: str) -> LazyPart:
        return LazyPart(known["sections"][name], lambda: getattr(complete().spec, name))

    limits = LazyPart(known["limits"], lambda: complete().tick_model.limits)
    model = known["tick_model"] | {"limits": limits, "memory": known["memory"].copy}
    sections = {name: section(name) for name in _SECTIONS}
    spec = LazyPart(known["spec"] | sections, lambda: complete().spec)
    return cast("RigSpec", spec), cast("TickModel", LazyPart(model, lambda: complete().tick_model))
