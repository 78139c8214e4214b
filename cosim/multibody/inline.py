"""Mechanisms written inside a rig: the list under `mechanism.bodies`.

Each entry is a link with the joint that carries it; the ground is the link `base`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cosim.errors import Place, did_you_mean
from cosim.multibody.description import Inertial, Joint, Link, Mechanism, Mimic, Pose
from cosim.multibody.findings import Findings
from cosim.multibody.frames import pose_of
from cosim.multibody.graph import build_mechanism
from cosim.multibody.inertia import check_inertia, inertia_matrix
from cosim.units import parse_quantity

BASE = "base"
MAX_REPEAT = 10_000
ROTATION = {"position": "rad", "velocity": "rad/s", "effort": "N*m", "damping": "N*m*s/rad"}
TRANSLATION = {"position": "m", "velocity": "m/s", "effort": "N", "damping": "N*s/m"}
KINDS = {"revolute": ROTATION, "continuous": ROTATION, "prismatic": TRANSLATION, "fixed": ROTATION}
MOVING_KEYS = ("axis", "damping", "friction", "limits", "mimic")
KEYS = ("name", "joint", "parent", "type", "origin", "mass", "com", "inertia", *MOVING_KEYS, "repeat")
COUNTS = {(3,): "3 numbers", (3, 6): "3 or 6 numbers"}
ORIGIN = (0.0, 0.0, 0.0)


def read_bodies(bodies: Any, place: Callable[[tuple], Place], name: str) -> Mechanism:
    """The mechanism called `name` of the plain YAML data `bodies`, a list of mappings.

    `place` gives the Place of an element by its path from the root of the rig, as
    ("mechanism", "bodies", 3, "mass"). Numbers are SI, strings may have units (`2 kg`, `90 deg`).
    Raises InputErrors with every mistake, in the order of the lines.
    """
    findings = Findings()
    links, joints = [Link(BASE, place=place(("mechanism", "bodies")))], []
    if not isinstance(bodies, list) or not bodies:
        findings.error(f"expected a list of bodies, got {_shown(bodies)}", links[0].place)
        bodies = []
    for i, data in enumerate(bodies):
        entry = _Entry.of(data, ("mechanism", "bodies", i), place, findings, KEYS)
        if entry is not None and (body := _body(entry, links[-1].name)) is not None:
            links += body[0]
            joints += body[1]
    return build_mechanism(name, links, joints, findings)


def _shown(value: Any) -> str:
    return "nothing" if value is None else f"'{value}'" if isinstance(value, str) else f"{value}"


@dataclass
class _Entry:
    """A mapping being read: what is wrong goes on record, and the default takes its place."""

    data: Mapping[str, Any]
    path: tuple
    place: Callable[[tuple], Place]
    findings: Findings

    @staticmethod
    def of(
        data: Any, path: tuple, place: Callable[[tuple], Place], findings: Findings, keys: Sequence[str]
    ) -> _Entry | None:
        """None, and a mistake on record, when `data` is no mapping; unknown keys are mistakes."""
        if not isinstance(data, dict):
            findings.error(f"expected the keys {', '.join(keys)}, got {_shown(data)}", place(path))
            return None
        entry = _Entry(data, path, place, findings)
        for key in data:
            if key not in keys:
                entry.error(f"unknown key '{key}'{did_you_mean(str(key), keys)}", key)
        return entry

    def error(self, what: str, *key: Any) -> None:
        self.findings.error(what, self.place(self.path + key))

    def inner(self, key: str, keys: Sequence[str]) -> _Entry | None:
        """The mapping under `key`; None when it is missing or wrong."""
        if key not in self.data:
            return None
        return _Entry.of(self.data[key], (*self.path, key), self.place, self.findings, keys)

    def table(self, key: str, keys: Sequence[str]) -> _Entry:
        """The mapping under `key`; an empty one when it is missing or wrong."""
        return self.inner(key, keys) or _Entry({}, (*self.path, key), self.place, self.findings)

    def text(self, key: str, default: str) -> str:
        value = self.data.get(key, default)
        if isinstance(value, str) and value.strip():
            return value
        if key in self.data:
            self.error(f"expected a name, got {_shown(value)}", key)
        return default

    def number(self, key: str, unit: str, default: float) -> float:
        if key not in self.data:
            return default
        try:
            return _quantity(self.data[key], unit)
        except ValueError as error:
            self.error(str(error), key)
            return default

    def not_negative(self, key: str, unit: str, default: float = 0.0) -> float:
        value = self.number(key, unit, default)
        if value < 0.0:
            self.error(f"must be 0 or more, got {value:g}", key)
            return default
        return value

    def vector(self, key: str, unit: str, default: Sequence[float], counts: tuple[int, ...] = (3,)) -> list[float]:
        if key not in self.data:
            return list(default)
        values = self.data[key]
        if not isinstance(values, list) or len(values) not in counts:
            got = f"{len(values)} of them" if isinstance(values, list) else _shown(values)
            self.error(f"expected {COUNTS[counts]}, got {got}", key)
            return list(default)
        try:
            return [_quantity(value, unit) for value in values]
        except ValueError as error:
            self.error(str(error), key)
            return list(default)


def _quantity(value: Any, unit: str) -> float:
    """The SI value of a YAML scalar. Raises ValueError with a message for people."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError(f"expected a number, got {_shown(value)}")
    try:
        number = parse_quantity(value, unit) if isinstance(value, str) else float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"expected a finite number, got {_shown(value)}")
    return number


def _body(entry: _Entry, previous: str) -> tuple[list[Link], list[Joint]] | None:
    """The links and joints of one entry, several when it repeats; None when it has no name."""
    name = entry.text("name", "")
    if not name:
        if "name" not in entry.data:
            entry.error("a body needs a name")
        return None
    if name == BASE:
        entry.error(f"'{BASE}' is the ground; give the body another name", "name")
        return None
    joint = _joint(entry, name, previous)
    link = Link(name, _inertial(entry, name, joint.kind), joint.place)
    if "repeat" not in entry.data:
        return [link], [joint]
    numbers = range(1, _repeat(entry) + 1)
    links = [replace(link, name=f"{name}_{k}") for k in numbers]
    parents = [joint.parent, *(copy.name for copy in links)]
    return links, [
        replace(joint, name=f"{joint.name}_{k}", parent=parents[k - 1], child=f"{name}_{k}") for k in numbers
    ]


def _repeat(entry: _Entry) -> int:
    count = entry.data["repeat"]
    if isinstance(count, int) and not isinstance(count, bool) and 1 <= count <= MAX_REPEAT:
        return count
    entry.error(f"expected a whole number from 1 to {MAX_REPEAT}, got {_shown(count)}", "repeat")
    return 1


def _joint(entry: _Entry, name: str, previous: str) -> Joint:
    kind = entry.text("type", "revolute")
    if kind not in KINDS:
        entry.error(f"joint type '{kind}' is not supported{did_you_mean(kind, KINDS)}", "type")
        kind = "fixed"
    if kind == "fixed" and entry.data.get("type") == kind:
        for key in MOVING_KEYS:
            if key in entry.data:
                entry.findings.note("without effect on a fixed joint", entry.place((*entry.path, key)))
    units = KINDS[kind]
    origin = entry.table("origin", ("xyz", "rpy"))
    limits = entry.table("limits", ("lower", "upper", "velocity", "effort"))
    lower = limits.number("lower", units["position"], -math.inf)
    upper = limits.number("upper", units["position"], math.inf)
    if lower > upper:
        limits.error(f"lower {lower:g} is above upper {upper:g}; swap them")
    if kind == "continuous" and (lower, upper) != (-math.inf, math.inf):
        limits.error("a continuous joint has no lower and upper; make it revolute")
    return Joint(
        name=entry.text("joint", name),
        kind=kind,
        parent=entry.text("parent", previous),
        child=name,
        pose=_pose(origin),
        axis=_axis(entry),
        lower=lower,
        upper=upper,
        max_velocity=limits.not_negative("velocity", units["velocity"], math.inf),
        max_effort=limits.not_negative("effort", units["effort"], math.inf),
        damping=entry.not_negative("damping", units["damping"]),
        friction=entry.not_negative("friction", units["effort"]),
        mimic=_mimic(entry, units["position"]) if kind != "fixed" else None,
        place=entry.place(entry.path),
    )


def _pose(origin: _Entry) -> Pose:
    return pose_of(origin.vector("xyz", "m", ORIGIN), origin.vector("rpy", "rad", ORIGIN))


def _axis(entry: _Entry) -> np.ndarray:
    axis = entry.vector("axis", "1", (0.0, 0.0, 1.0))
    length = math.hypot(*axis)
    if length == 0.0:
        entry.error("the axis is zero; give it a direction", "axis")
        length = 1.0
    return np.array(axis) / length


def _mimic(entry: _Entry, unit: str) -> Mimic | None:
    mimic = entry.inner("mimic", ("joint", "multiplier", "offset"))
    if mimic is None:
        return None
    leader = mimic.text("joint", "")
    if "joint" not in mimic.data:
        mimic.error("name the joint to follow with the key 'joint'")
    multiplier, offset = mimic.number("multiplier", "1", 1.0), mimic.number("offset", unit, 0.0)
    return Mimic(leader, multiplier, offset) if leader else None


def _inertial(entry: _Entry, name: str, kind: str) -> Inertial | None:
    """None for a massless body: one without `mass`, or a fixed one with mass 0."""
    com = entry.vector("com", "m", ORIGIN)
    moments = entry.vector("inertia", "kg*m^2", ORIGIN, counts=(3, 6))
    mass = entry.number("mass", "kg", 1.0)  # the default stands in for one that cannot be read
    if "mass" not in entry.data:
        for key in ("com", "inertia"):
            if key in entry.data:
                entry.error("a body without mass; give it a mass or leave this out", key)
        return None
    if mass < 0.0 or (mass == 0.0 and kind != "fixed"):
        entry.error(f"must be more than 0, got {mass:g}; leave the mass out for a massless body", "mass")
        return None
    if mass == 0.0:
        if any(moments):
            entry.error("a body of mass 0 has no inertia; give it a mass", "inertia")
        return None
    inertia = inertia_matrix(*moments, *ORIGIN[len(moments) - 3 :])
    mistake, note = check_inertia(name, mass, inertia)
    if mistake:
        entry.error(mistake, "inertia")
    if note:
        entry.findings.note(note, entry.place((*entry.path, "inertia")))
    return Inertial(mass, np.array(com), inertia)
