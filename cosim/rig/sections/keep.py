"""The section `keep` of a rig: which signals of which ticks a run keeps, and where."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from cosim.core.errors import InputErrors, SourceLocation
from cosim.core.types import param, params
from cosim.output.store_file import SUFFIX
from cosim.rig.reading.schema import Reading, read, show
from cosim.rig.reading.yaml_source import YamlValue

WORDS: dict[str, dict[str, Any]] = {"all": {}, "final": {"last": 0.0}}


@params
class KeepSpec:
    last: float | None = param(unit="s", min=0, default=None, doc="only the end of the run")
    every: int = param(min=1, default=1, doc="only every n-th tick")
    signals: tuple[str, ...] = param(default=(), doc="only these, such as elbow/position or */effort")
    budget: float = param(unit="B", above=0, default=2.0**30, doc="memory for the signals")
    file: str | None = param(default=None, doc="keep the signals in this file")


Keep = KeepSpec | str | Mapping[str, Any]


def read_keep(data: YamlValue, reading: Reading) -> KeepSpec:
    """The section; errors are recorded in `reading`."""
    at = ("keep",)
    if isinstance(data, str):
        if data not in WORDS:
            reading.fail(at, f"expected a mapping or one of {', '.join(WORDS)}, got {show(data)}")
            return KeepSpec()
        data = WORDS[data]
    keep = read(KeepSpec, data, at, reading)
    if keep is None:
        return KeepSpec()
    if keep.file is None:
        return keep
    if not keep.file.endswith(SUFFIX):
        reading.fail((*at, "file"), f"the signals of a run are in a file with the suffix {SUFFIX}; give it this suffix")
    if keep.last is not None:
        reading.fail((*at, "file"), "the last ticks are kept in memory; take 'file' or 'last' out")
    file = reading.file(keep.file, (*at, "file"))
    return keep if file is None else dataclasses.replace(keep, file=str(file))


def keep_of(given: Keep) -> KeepSpec:
    """What `Rig.run` was given. Raises InputErrors, each with its key."""
    if isinstance(given, KeepSpec):
        return given
    reading = Reading(lambda path: SourceLocation(".".join(map(str, path))), [])
    data = given if isinstance(given, str) else {k: list(v) if isinstance(v, tuple) else v for k, v in given.items()}
    keep = read_keep(data, reading)
    if reading.errors:
        raise InputErrors(reading.errors)
    return keep
