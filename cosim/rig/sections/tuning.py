"""The section `tuning` of a rig: which parameters a tuning session varies, and what it looks for. Plain values; names
and ranges are resolved where they are used, with the rig."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from cosim.core.types import param, params
from cosim.rig.reading.schema import READERS, KeyPath, Reading, show
from cosim.rig.reading.yaml_source import YamlValue


class NamedFigure(dict[str, Any]):
    """name -> value, None for a name without one; a file may have a list of names."""


def _named(reading: Reading, hint: Any, value: YamlValue, meta: Mapping[str, Any], path: KeyPath) -> NamedFigure | None:
    if isinstance(value, dict):
        return NamedFigure(value)
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return NamedFigure(dict.fromkeys(value))
    return reading.fail(path, f"expected a mapping or a list of names, got {show(value)}")


READERS[NamedFigure] = _named


@params
class TuningKeys:
    parameters: NamedFigure | None = param(default=None, doc="what is varied, and within which bounds")
    minimise: NamedFigure | None = param(default=None, doc="figures of merit and their weights; their sum is the cost")
    limits: NamedFigure | None = param(default=None, doc="figures of merit and bounds that must hold")
    measured: str | None = param(default=None, doc="a log of the machine that runs are compared with")
    units: NamedFigure | None = param(default=None, doc="of the log, where it does not say them")
    columns: NamedFigure | None = param(default=None, doc="of the log, for names that are not found")
    gains: NamedFigure | None = param(default=None, doc="of columns of the log")
    topic: str | None = param(default=None, doc="of a log in MCAP with several")
    plants: NamedFigure | None = param(default=None, doc="numbers of the plant, and by which fraction they vary")
    samples: int | None = param(min=1, max=1000, default=None, doc="random plants instead of the corners")
    robust: Literal["worst", "mean"] = param(default="worst", doc="how the costs of the plants become one")
    optimiser: str | None = param(default=None, doc="what proposes the trials")
    trials: int = param(min=1, max=1_000_000, default=200, doc="after which the session ends")
    batch: int = param(min=1, max=10_000, default=16, doc="trials that are proposed and evaluated together")
    seed: int = param(min=0, max=2**31 - 1, default=0, doc="of all random numbers")
    duration: float | None = param(unit="s", above=0, default=None, doc="of each run; default: the rig's")
