"""Numbers of a rig as keys of its file, for overlays.

A section of a joint, such as `actuator`, is the joint's own or the one of `joints.all`, and a joint's own replaces the
other as a whole. So a number of a section is written with the rest of it.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from cosim.rig.parameter_table import table_of
from cosim.rig.rig import Rig

ACTUATOR = "actuator"
SECTIONS = (ACTUATOR, "friction", "encoder")  # of a joint, which are replaced as a whole
ALL = "all"


def file_keys(rig: Rig, values: Mapping[str, Any]) -> dict[str, Any]:
    """Key of the file -> value; values: by names of `Rig.numbers` and `Rig.parameters`, or of keys of the
    sections above."""
    table, found = table_of(rig), dict[str, Any]()
    for name, value in values.items():
        place = _place(rig, name)
        if place is None:
            found[table.find(name)[0].key] = value
            continue
        joint, section, fields = place
        data: Any = found.setdefault(f"joints.{joint}.{section}", joint_section(rig, joint, section))
        for field in fields[:-1]:
            data = data[int(field)] if isinstance(data, list) else data.setdefault(field, {})
        data[fields[-1]] = value
    return found


def joint_section(rig: Rig, joint: str, section: str) -> dict[str, Any]:
    """A section of a joint as the file has it, or the one of `all` where the joint has none. Without both, the actuator
    that the joint has all the same, of a robot file or by default; else empty."""
    joints: Any = rig.spec.source.data.get("joints") or {}
    own, all_ = (joints.get(name) or {} for name in (joint, ALL))
    written = copy.deepcopy(own.get(section) or all_.get(section) or {})
    actuator = rig.spec.joints[joint].actuator
    if written or section != ACTUATOR or actuator is None:
        return written
    fields = dataclasses.asdict(actuator.params)
    return {"type": actuator.name} | {key: value for key, value in fields.items() if _is_finite(value)}


def _is_finite(value: Any) -> bool:
    """Of what a file can have: no None, and no limit without end."""
    return value is not None and not (isinstance(value, float) and not math.isfinite(value))


def _place(rig: Rig, name: str) -> tuple[str, str, list[str]] | None:
    """(joint, section, fields) of `joints.JOINT.SECTION.FIELD`; None of other names. A joint may have dots."""
    for joint in rig.joints:
        if (rest := name.removeprefix(f"joints.{joint}.")) != name:
            section, *fields = rest.split(".")
            if section in SECTIONS and fields:
                return joint, section, fields
    return None
