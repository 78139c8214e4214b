"""What families of drives offer beyond the contract of drivers: modules of their folder that need not exist."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import cast

from cosim.core.errors import InputError, SourceLocation, did_you_mean
from cosim.rig.reading.driver_family import DriverFamily
from cosim.rig.reading.plugins import DRIVER, find, known_names


def families(name: str | None = None) -> Iterator[tuple[str, DriverFamily]]:
    """(name, family) of all families that can be imported, or of one. Raises InputError for an unknown name."""
    known = known_names(DRIVER)
    if name is not None and name not in known:
        raise InputError(f"no family of drives '{name}'{did_you_mean(name, known)}", "--family")
    for each in known if name is None else [name]:
        try:
            yield each, cast(DriverFamily, find(DRIVER, each, Path(), SourceLocation("--family")))
        except InputError:
            if name is not None:
                raise


def hook(family: DriverFamily, name: str) -> ModuleType | None:
    """The module `name` in the folder of a family; None where it has none."""
    target = f"{family.__name__}.{name}"
    return importlib.import_module(target) if _exists(target) else None


def _exists(target: str) -> bool:
    try:
        return importlib.util.find_spec(target) is not None
    except ModuleNotFoundError:  # the family is one file
        return False
