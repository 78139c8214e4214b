"""The section `mechanism.numbers`: masses, inertias and frictions that replace the robot file's or the bodies'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated

import numpy as np

from cosim.core.errors import did_you_mean
from cosim.core.types import param, params
from cosim.mechanics.multibody.description.diagnostics import Diagnostics
from cosim.mechanics.multibody.description.inertia import check_inertia, inertia_matrix
from cosim.mechanics.multibody.mechanism import Inertial, Joint, Link
from cosim.rig.reading.schema import Reading, read_fields
from cosim.rig.reading.yaml_source import YamlValue
from cosim.rig.sections.bodies import three_or_six
from cosim.rig.sections.geometry import ORIGIN, Vector

AT = ("mechanism", "numbers")


@params
class NumbersKeys:
    mass: float | None = param(unit="kg", above=0, default=None, doc="of a link")
    com: Vector | None = param(unit="m", default=None, doc="of a link: its centre of mass")
    inertia: Annotated[tuple[float, ...], three_or_six] | None = param(unit="kg*m^2", default=None)
    damping: float | None = param(unit="joint damping", min=0, default=None, doc="of a joint")
    friction: float | None = param(unit="joint effort", min=0, default=None, doc="of a joint")


def with_numbers(
    links: Sequence[Link],
    joints: Sequence[Joint],
    data: Mapping[str, YamlValue],
    reading: Reading,
    findings: Diagnostics,
) -> tuple[list[Link], list[Joint]]:
    """The links and joints with the numbers of the section; errors are recorded."""
    found_links, found_joints = {link.name: link for link in links}, {joint.name: joint for joint in joints}
    changed = set(data)
    for name, values in data.items():
        known = [*found_links, *found_joints]
        if name not in known:
            reading.fail((*AT, name), f"there is no link or joint '{name}'{did_you_mean(name, known)}")
            continue
        joint = found_joints.get(name)
        of = reading.of({name: joint.kind} if joint else None)
        fields = read_fields(NumbersKeys, values, (*AT, name), of)
        given = {key: value for key, value in fields.items() if value is not None}
        of_joint = {key: given.pop(key) for key in ("damping", "friction") if key in given}
        if of_joint and joint is None:
            reading.fail((*AT, name), f"'{name}' is a link, and {' and '.join(of_joint)} belong to a joint")
        elif of_joint and joint is not None:
            found_joints[name] = replace(joint, **of_joint)
        if not given:
            continue
        link = found_links.get(name)
        if link is None:
            reading.fail((*AT, name), f"'{name}' is a joint, and {' and '.join(given)} belong to a link")
            continue
        if link.inertial is None and "mass" not in given:
            reading.fail((*AT, name), f"'{name}' is massless; give it a mass too")
            continue
        found_links[name] = replace(link, inertial=_inertial(link.inertial, given, (*AT, name), reading, findings))
    return (
        [found_links[link.name] if link.name in changed else link for link in links],
        [found_joints[joint.name] if joint.name in changed else joint for joint in joints],
    )


def _inertial(
    before: Inertial | None,
    given: Mapping[str, float | tuple[float, ...]],
    path: tuple[str, ...],
    reading: Reading,
    findings: Diagnostics,
) -> Inertial:
    inertial = before or Inertial(0.0, np.array(ORIGIN), np.zeros((3, 3)))
    mass, com, moments = (given.get(key) for key in ("mass", "com", "inertia"))
    if isinstance(mass, float):
        inertial = replace(inertial, mass=mass)
    if isinstance(com, tuple):
        inertial = replace(inertial, com=np.array(com))
    if isinstance(moments, tuple):
        inertial = replace(inertial, inertia=inertia_matrix(*moments, *ORIGIN[len(moments) - 3 :]))
    error, note = check_inertia(inertial.mass, inertial.inertia)
    if error:
        reading.fail((*path, "inertia"), error)
    if note:
        findings.note(note, reading.place((*path, "inertia")))
    return inertial
