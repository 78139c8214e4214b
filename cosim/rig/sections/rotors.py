"""The section `mechanism.rotors` of a rig: rotors that turn with several joints, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cosim.core.errors import did_you_mean, listed
from cosim.core.types import param, params
from cosim.mechanics.multibody.mechanism import CoupledRotor
from cosim.rig.reading.names import check_name
from cosim.rig.reading.schema import KeyPath, Reading, number, read_fields, show
from cosim.rig.reading.yaml_source import YamlValue
from cosim.rig.sections.joint_definition import representative_kind
from cosim.rig.sections.loops_and_springs import Parts


@params
class RotorKeys:
    turns: dict | None = param(default=None, doc="joint: turns of the rotor per turn of the joint, or rad/m")
    inertia: float | None = param(unit="kg*m^2", min=0, default=None, doc="about its axis")
    damping: float | None = param(unit="N*m*s/rad", min=0, default=None, doc="viscous friction")
    friction: float | None = param(unit="N*m", min=0, default=None, doc="dry friction")


def read_rotors(
    data: Mapping[str, YamlValue], of_file: Sequence[CoupledRotor], at: KeyPath, parts: Parts, reading: Reading
) -> list[CoupledRotor]:
    """The rotors of the robot file, with the numbers that the section at the path `at` gives them, and its own; errors
    are recorded. Joints that do not exist are reported with the topology."""
    found = {rotor.name: rotor for rotor in of_file}
    for name, given in data.items():
        path, before = (*at, name), len(reading.errors)
        if name not in found:
            try:
                check_name(name)
            except ValueError as error:
                reading.fail(path, str(error))
        known = found.get(name, CoupledRotor(name, (), place=reading.place(path)))
        read = read_fields(RotorKeys, given, path, reading)
        fields = {key: value for key, value in read.items() if value is not None}
        if "turns" in fields:
            fields["turns"] = _turns(fields["turns"], (*path, "turns"), parts, reading)
        if len(reading.errors) > before:
            continue
        missing = [key for key in ("turns", "inertia") if key not in fields and name not in found]
        if missing:
            reading.fail(path, f"missing key {listed([repr(key) for key in missing])}")
        found[name] = replace(known, **fields)
    return list(found.values())


def _turns(
    data: Mapping[str, YamlValue], path: KeyPath, parts: Parts, reading: Reading
) -> tuple[tuple[str, float], ...]:
    """Joint -> turns, or radians per metre."""
    if not data:
        reading.fail(path, "names no joint; give joint: turns of the rotor per turn of the joint")
    found = []
    for joint, value in data.items():
        if parts.units(joint) is None:
            what = f"joint {show(joint)} does not exist{did_you_mean(joint, parts.joints)}"
            reading.fail((*path, joint), what)
            continue
        of = reading.of({joint: representative_kind(parts.units(joint))})
        turns = number(value, "joint ratio", (*path, joint), of)
        if turns == 0.0:
            reading.fail((*path, joint), "must not be 0; leave the joint out")
        found.append((joint, turns if turns is not None else 0.0))
    return tuple(found)
