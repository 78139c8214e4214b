"""Sections of joints in a rig file, as overlays need them: a joint with a section has nothing of that of `all`."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from cosim.rig.wiring.wired_rig import WiredRig


def joint_section(rig: WiredRig, joint: str, key: str) -> dict[str, Any]:
    """A section of a joint as the file has it, or the one of `all` where the joint has none."""
    own, common = (_entry(rig, name) for name in (joint, "all"))
    return copy.deepcopy(own.get(key) or common.get(key) or {})


def overlay_of_numbers(rig: WiredRig, values: Mapping[str, object]) -> dict[str, object]:
    """Keys of an overlay with these values, by their keys in the file: a number in a section that a joint has from
    `all` stands in the whole section."""
    found = dict[str, object]()
    for key, value in values.items():
        if (place := _inherited(rig, key)) is None:
            found[key] = value
            continue
        joint, section, *fields = place
        data: Any = found.setdefault(f"joints.{joint}.{section}", joint_section(rig, joint, section))
        for field in fields[:-1]:
            data = data.setdefault(field, {})
        data[fields[-1]] = value
    return found


def _inherited(rig: WiredRig, key: str) -> list[str] | None:
    """[joint, section, fields …] of a key in a section that the joint has from `all`."""
    for joint in rig.joints:
        if (rest := key.removeprefix(f"joints.{joint}.")) != key and "." in rest:
            section, *fields = rest.split(".")
            if section not in _entry(rig, joint) and isinstance(_entry(rig, "all").get(section), dict):
                return [joint, section, *fields]
    return None


def _entry(rig: WiredRig, name: str) -> Mapping[str, Any]:
    return (rig.spec.source.data.get("joints") or {}).get(name) or {}
