"""Data sheets of drives against the driver that would use them, and against the joints of a rig."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from cosim.core.errors import InputError
from cosim.rig.reading.driver_family import families, hook
from cosim.rig.reading.yaml_source import Override
from cosim.rig.sections.rig_spec import RigSpec, read_rig
from cosim.rig.wiring.driver_context import torque_constant

MODULE = "data_sheet"  # of a family, with `check(path, joints)`: see CiA 402 drives


def check_data_sheet(path: Path, rig: Path | None, overrides: Sequence[Override]) -> tuple[list[str], bool]:
    """(lines of a report, whether the drive fits). rig: whose joints it is for; None: any.

    Raises InputError for a file that is no data sheet, with its line, and for a rig without such drives.
    """
    lines: list[str] = []
    fits = True
    for module, joints in _readers(rig, overrides):
        own, fitting = module.check(path, joints)
        lines += own
        fits &= fitting
    return lines, fits


def _readers(rig: Path | None, overrides: Sequence[Override]) -> Iterator[tuple[ModuleType, list[Any]]]:
    """The modules of families that read data sheets, each with the joints of the rig that have its drives."""
    if rig is None:
        yield from ((module, []) for _, family in families() if (module := hook(family, MODULE)) is not None)
        return
    spec = read_rig(rig, overrides)
    found = [(module, driver) for driver in spec.drivers if (module := hook(driver.family, MODULE)) is not None]
    if not found:
        known = ", ".join(f"'{name}'" for name, family in families() if hook(family, MODULE) is not None)
        what = f"has no drives of a family that reads data sheets; give a driver of type {known}"
        raise InputError(what, spec.source.place(("drivers",) if spec.drivers else ()))
    for module, driver in found:
        yield module, [_joint(spec, driver, name) for name in driver.joints]


def _joint(spec: RigSpec, driver: Any, name: str) -> tuple[str, str, Any, Any, float, float]:
    """Name, mode, driver, wiring, limit of effort and torque constant at the drive."""
    wiring, joint = driver.wiring[name], spec.joints[name]
    effort = driver.loads[name].effort if driver.loads else joint.limits["effort"]
    constant = torque_constant(joint) / wiring.ratio
    return name, driver.mode, driver.plugin.params, wiring, effort / wiring.ratio, constant
