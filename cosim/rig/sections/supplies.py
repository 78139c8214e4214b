"""Supplies that drives of several joints share, each a DC link.

supplies:
  link: {source: {type: diode_bridge, voltage: 325 V, resistance: 0.5 ohm}, capacitance: 1 mF}
joints:
  all: {actuator: {type: drive, …, supply: link}}
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace
from typing import Any

from cosim.core.errors import did_you_mean
from cosim.mechanics.bondgraph.components import dc_link
from cosim.plugins.actuators import _supplied_drives
from cosim.rig.reading import schema
from cosim.rig.reading.plugins import Plugin, call_checked
from cosim.rig.reading.schema import Reading
from cosim.rig.sections.bond_graphs import SharedDriveSpec
from cosim.rig.sections.joints import JointEntry, JointSpec

SECTION = "supplies"


def read_supplies(
    data: Mapping[str, Any],
    specs: dict[str, JointSpec],
    entries: Mapping[str, JointEntry],
    real: Container[str],
    taken: Mapping[str, str],
    reading: Reading,
) -> tuple[tuple[SharedDriveSpec, ...], dict[str, JointSpec]]:
    """(The drives of each supply, the joints without these actuators). entries, real, taken: as of `read_bond_graphs`.
    Errors are recorded."""
    links = {}
    for name in data:
        at = (SECTION, name)
        if name in taken:
            reading.fail(at, f"'{name}' is the name of {taken[name]}; give the supply another one")
        link = schema.read(dc_link.Params, reading.mapping(data[name], at), at, reading)
        if link is not None:
            links[name] = link
    drives: dict[str, dict[str, Any]] = {name: {} for name in data}
    for joint, spec in specs.items():
        supply = getattr(spec.actuator.params, "supply", None) if spec.actuator is not None else None
        if supply is None:
            continue
        own, at = entries[joint].reading, ("joints", joint, "actuator", "supply")
        if supply not in drives:
            own.fail(at, f"there is no supply '{supply}'{did_you_mean(supply, drives)}")
        elif joint in real:
            own.fail(at, f"joint '{joint}' has a real motor, and a supply is simulated; take 'supply' out")
        elif spec.actuator is not None:
            params = spec.actuator.params
            call_checked(lambda params=params: _supplied_drives.check(params), at[:-1], own)
            drives[supply][joint] = params
    for name in data:
        if not drives[name] and not reading.errors:
            reading.fail((SECTION, name), f"no drive is on it; give one 'supply: {name}', or take it out")
    found = tuple(
        SharedDriveSpec(
            name,
            {joint: joint for joint in drives[name]},
            Plugin("supply", _supplied_drives, _supplied_drives.SuppliedDrives(link, drives[name])),
            SECTION,
        )
        for name, link in links.items()
        if drives[name]
    )
    supplied = {joint for of in drives.values() for joint in of}
    return found, {joint: replace(spec, actuator=None) if joint in supplied else spec for joint, spec in specs.items()}
