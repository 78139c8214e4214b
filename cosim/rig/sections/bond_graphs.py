"""Drives of several joints, each a bond graph of its own.

bond_graphs:
  hydraulics:
    joints: {arm: shoulder, boom: elbow}   # names in the graph, and the dofs that they are
    graph: {…}
    signals: {pressure: line.effort}
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

from cosim.core.errors import did_you_mean
from cosim.core.plugin_loading import ACTUATOR
from cosim.mechanics.multibody.mechanism import Joint
from cosim.rig.reading.plugins import Plugin, read_plugin
from cosim.rig.reading.schema import Reading
from cosim.rig.sections.joints import JointEntry, bound_reason, kinds_of

SECTION = "bond_graphs"


@dataclass(frozen=True)
class SharedDriveSpec:
    """A drive of several joints. joints: name in its graph -> dof; section: of the rig that has it, by its name."""

    name: str
    joints: dict[str, str]
    plugin: Plugin
    section: str = SECTION


def joints_of(data: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """By drive: name in its graph -> dof, as the file has it, without checks."""
    found = {}
    for name, section in data.items():
        joints = section.get("joints") if isinstance(section, dict) else None
        found[name] = {str(key): str(dof) for key, dof in joints.items()} if isinstance(joints, dict) else {}
    return found


def read_bond_graphs(
    data: Mapping[str, Any],
    joints: Mapping[str, Joint] | None,
    entries: Mapping[str, JointEntry],
    real: Container[str],
    taken: Mapping[str, str],
    reading: Reading,
) -> tuple[SharedDriveSpec, ...]:
    """The drives of the section. joints: all dofs, and fixed and mimic joints; real: dofs with a real motor; taken:
    names, and what has them. Errors are recorded."""
    found, owners = [], dict[str, str]()
    for name, dofs in joints_of(data).items():
        at, before = (SECTION, name), len(reading.errors)
        if name in taken:
            reading.fail(at, f"'{name}' is the name of {taken[name]}; give the graph another one")
        section = reading.mapping(data[name], at)
        if not dofs:
            reading.fail((*at, "joints"), "name the joints that it moves, such as {arm: shoulder, boom: elbow}")
        for key, dof in dofs.items():
            why = _why_not(dof, joints, entries, real, owners)
            if why:
                reading.fail((*at, "joints", key), why)
            owners.setdefault(dof, name)
        if reading.errors[before:]:
            continue
        written = {key: value for key, value in section.items() if key != "joints"}
        plugin = read_plugin(ACTUATOR, {"type": "bond_graph", **written}, at, reading, kinds_of(dofs.values(), joints))
        if plugin is not None:
            found.append(SharedDriveSpec(name, dofs, plugin))
    return tuple(found)


def _why_not(
    dof: str,
    joints: Mapping[str, Joint] | None,
    entries: Mapping[str, JointEntry],
    real: Container[str],
    owners: Mapping[str, str],
) -> str:
    """Why a dof cannot be one of a drive of several joints; empty if it can."""
    if joints is None:
        return ""
    if dof not in joints:
        return f"unknown joint '{dof}'{did_you_mean(dof, [name for name in joints if not bound_reason(joints[name])])}"
    if bound_reason(joints[dof]):
        return f"joint '{dof}' {bound_reason(joints[dof])}; name one that moves on its own"
    if dof in owners:
        return f"joint '{dof}' is one of '{owners[dof]}' already; put what acts on it into one graph"
    if dof in real:
        return f"joint '{dof}' has a real motor, which no simulated drive moves; take it out of one of them"
    data = entries[dof].data
    if data.get("actuator") is not None:
        return f"joint '{dof}' has an actuator of its own; take that out, or the joint out of the graph"
    if data.get("prescribed") is not None:
        return f"joint '{dof}' is prescribed, its effort is computed; take out 'prescribed', or the joint of the graph"
    return ""
