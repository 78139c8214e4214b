"""The list `mechanism.contacts`: pairs of shapes that may touch, each with its law.

An entry is one contact, or with `shapes: collision` one for each collision shape of some links of the robot file, which
is called `<entry>/<link>`, from the second shape of a link on `<entry>/<link>/2`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any, Literal, NamedTuple

from cosim.core.errors import InputError, SourceLocation, did_you_mean, listed
from cosim.core.types import param
from cosim.core.units import show_time
from cosim.mechanics.multibody.contact.gaps import MOST_POINTS, is_possible, points_of
from cosim.mechanics.multibody.contact.shape_words import in_words
from cosim.mechanics.multibody.contact.shapes import ContactLaw, HalfSpace, HullShape, TerrainShape
from cosim.mechanics.multibody.description.collisions import NEAREST, CollisionShape, SurfaceFriction, counted
from cosim.mechanics.multibody.description.contact_stiffness import (
    body_masses,
    largest_stiffness,
    lighter_mass,
    moving_mass,
    usual_stiffness,
)
from cosim.mechanics.multibody.description.diagnostics import Diagnostics
from cosim.mechanics.multibody.description.inertia import moving_parts
from cosim.mechanics.multibody.mechanism import Contact, Mechanism
from cosim.rig.reading.names import Name, Reference
from cosim.rig.reading.schema import KeyPath, Reading, read, show
from cosim.rig.reading.yaml_source import YamlValue
from cosim.rig.sections.bodies import BASE
from cosim.rig.sections.contact_laws import RIGID, ContactLawKeys, ContactStiffness, FrictionPair
from cosim.rig.sections.contact_limits import ContactLimitKeys
from cosim.rig.sections.contact_shapes import SHAPES, PlacedShape, ShapeKeys, placed_shape
from cosim.rig.sections.ground import GROUND, Ground, read_ground
from cosim.rig.sections.joint_definition import keyed

WITH, SELF = "with", "self_contact"
FRICTION_OF_SELF = f"; give '{SELF}: {{friction: …}}'"
MOST_EXACT_POINTS = 4  # of all exact contacts of a mechanism
PARTS_OF_NAME = "/"  # between the name of an entry and those of its links


@keyed
class _Named:
    name: Name = param(doc="of the contact in signals and parameters")


@keyed
class ContactKeys(ContactLawKeys, ShapeKeys, _Named):
    shapes: Literal["collision"] | None = param(default=None, doc="those of the robot file, in place of a shape")
    links: tuple[Reference, ...] | None = param(default=None, doc="that have these shapes")
    limits: ContactLimitKeys = param(default=ContactLimitKeys(), doc="of the contact, each of its own")
    virtual: bool = param(default=False, doc="in the simulation alone; drives of real joints exert its force")
    exact: bool = param(default=False, doc="finds the instants at which it touches, slips, sticks and lifts")


class Side(NamedTuple):
    """One side of a contact: a link with a shape in it, and the surface of it in a robot file."""

    link: str
    placed: PlacedShape
    surface: SurfaceFriction | None = None


@dataclass
class ContactReader:
    """Reads contacts of a mechanism; errors and remarks are recorded.

    mechanism: its links and joints alone; collisions: of the robot file, None of a rig without one; section: the keys
    of `mechanism` that could be read.
    """

    mechanism: Mechanism
    collisions: Sequence[CollisionShape] | None
    section: Mapping[str, Any]
    reading: Reading
    findings: Diagnostics
    said: set[str] = field(default_factory=set)

    @cached_property
    def bodies(self) -> dict[str, str]:
        """Link -> the first link of its rigid body."""
        return moving_parts(self.mechanism.links, self.mechanism.joints)

    @cached_property
    def masses(self) -> Mapping[str, float]:
        return body_masses(self.mechanism)

    @cached_property
    def moving(self) -> float:
        return moving_mass(self.mechanism)

    @cached_property
    def ground(self) -> Ground | None:
        """None after an error."""
        root = self.mechanism.root
        if GROUND not in self.section:
            return None
        offered = [each for each in self.collisions or () if each.link == root and _is_ground(each)]
        return read_ground(self.section[GROUND], offered, self.reading, self.findings)

    def entries(self, items: Sequence[YamlValue], at: KeyPath) -> list[Contact]:
        """The contacts of the list at the path `at`."""
        found: list[Contact] = []
        for i, data in enumerate(items):
            keys = read(ContactKeys, data, (*at, i), self.reading, besides=(WITH,))
            if keys is not None:
                found += self._entry(keys, data.get(WITH), (*at, i))
        if (points := sum(points_of(*contact.shapes) for contact in found)) > MOST_POINTS:
            what = f"the contacts have {points} points, at most {MOST_POINTS} are simulated"
            self.reading.fail(at, f"{what}; leave some out, or take spheres for boxes and cylinders")
        return found

    def _entry(self, keys: ContactKeys, other: YamlValue, path: KeyPath) -> list[Contact]:
        before = len(self.reading.errors)
        if keys.exact and keys.stiffness is None:
            keys = replace(keys, stiffness=ContactStiffness(math.inf))
        if keys.exact and not math.isinf(keys.stiffness or 0.0):
            self.reading.fail((*path, "exact"), "an exact contact is rigid; take 'stiffness' or 'exact' out")
        elif keys.virtual and keys.exact:
            what = "a virtual contact is a spring, and an exact one is rigid"
            self.reading.fail((*path, "exact"), f"{what}; take 'virtual' or 'exact' out")
        elif keys.virtual and (keys.stiffness is None or math.isinf(keys.stiffness)):
            why = "the stiffness that drives can exert is bounded by their damping; give it in N/m"
            self.reading.fail((*path, "virtual"), f"a virtual contact needs 'stiffness': {why}")
        firsts, second = self._firsts(keys, path), self._second(other, path)
        if second is None or len(self.reading.errors) > before:
            return []
        found = []
        for name, first in firsts:
            if why := self._refusal(first, second):
                self.reading.fail(path, why)
            elif (law := self.law(keys, first, second, other == GROUND, path)) is not None:
                if keys.exact and (why := _not_exact(law, first, second)):
                    self.reading.fail((*path, "exact"), why)
                own = self.contact(name, first, second, law, path)
                found.append(replace(own, limits=keys.limits.bounds, virtual=keys.virtual, exact=keys.exact))
        return found

    # --- sides ---

    def _firsts(self, keys: ContactKeys, path: KeyPath) -> list[tuple[str, Side]]:
        """(name of the contact, its first side), several for `shapes`."""
        if keys.shapes is None:
            if keys.links is not None:
                self.reading.fail((*path, "links"), "belongs to 'shapes: collision'; name one link by 'link'")
            elif keys.link is None:
                self.reading.fail(path, "missing key 'link'")
            elif (link := self.link(keys.link, (*path, "link"))) is not None:
                placed = self._placed(keys, path)
                return [] if placed is None else [(keys.name, Side(link, placed))]
            return []
        own = [key for key in ("link", *SHAPES, "at", "origin") if getattr(keys, key) is not None]
        if own:
            what = "the shapes are those of the robot file"
            self.reading.fail((*path, own[0]), f"{what}; take out {listed([repr(key) for key in own])}")
        elif not keys.links:
            self.reading.fail(path, "missing key 'links'; name the links whose shapes may touch")
        elif self.collisions is None:
            what = "the bodies of a rig have no collision shapes"
            self.reading.fail((*path, "shapes"), f"{what}; give one of {', '.join(SHAPES)}")
        else:
            return self._of_file(keys.name, keys.links, path)
        return []

    def _of_file(self, name: str, links: Sequence[str], path: KeyPath) -> list[tuple[str, Side]]:
        found = []
        for k, written in enumerate(links):
            link = self.link(written, (*path, "links", k))
            if link is None:
                continue
            sides = self.sides_of(link)
            if isinstance(sides, str):
                self.reading.fail((*path, "links", k), f"link '{written}' {sides}")
                continue
            whole = f"{name}{PARTS_OF_NAME}{part_of_name(link)}"
            found += [(numbered(whole, n), side) for n, side in enumerate(sides)]
        return found

    def sides_of(self, link: str) -> list[Side] | str:
        """The collision shapes of a link in the robot file, or why it has none. What is lost of them is recorded."""
        shapes = [each for each in self.collisions or () if each.link == link]
        taken = [each for each in shapes if each.shape is not None and not _is_ground(each)]
        others = [each for each in shapes if each.shape is None]
        if not shapes:
            return "has no collision shape in the robot file; give it one, such as a sphere"
        if not taken:
            if damaged := next((each for each in others if each.lost), None):
                return f"has a shape that cannot be read ({damaged.lost[0]}); correct the robot file"
            near = NEAREST.get(shapes[0].kind, "spheres, boxes or capsules")
            return f"has shapes that are not read yet ({counted(shapes)}); give it {near} that come close"
        if others:
            what = f"shapes of link '{link}' that touch nothing, because they are not read: {counted(others)}"
            self._say(self.findings.warn, what, others[0].place)
        for each in taken:
            for say, remarks in ((self.findings.warn, each.lost), (self.findings.note, each.remarks)):
                for what in remarks:
                    self._say(say, what, each.place)
        return [
            Side(link, PlacedShape(each.shape, each.pose), each.friction) for each in taken if each.shape is not None
        ]

    def _say(self, say: Callable[[str, SourceLocation], None], what: str, place: SourceLocation) -> None:
        """Once, at the first shape that it is true of."""
        if what not in self.said:
            self.said.add(what)
            say(what, place)

    def _second(self, other: YamlValue, path: KeyPath) -> Side | None:
        at = (*path, WITH)
        if other is None:
            return self.reading.fail(path, f"missing key '{WITH}'; give '{GROUND}', or the other link with its shape")
        if other == GROUND:
            ground = self.ground
            if ground is None:
                return None
            return Side(self.mechanism.root, PlacedShape(ground.shape, ground.pose), ground.surface)
        if not isinstance(other, dict):
            what = f"expected '{GROUND}' or a section with a link and its shape"
            return self.reading.fail(at, f"{what}, got {show(other)}")
        keys = read(ShapeKeys, other, at, self.reading)
        if keys is None:
            return None
        if keys.link is None:
            return self.reading.fail(at, "missing key 'link'")
        link, placed = self.link(keys.link, (*at, "link")), self._placed(keys, at)
        return None if link is None or placed is None else Side(link, placed)

    def _placed(self, keys: ShapeKeys, path: KeyPath) -> PlacedShape | None:
        """None after an error, which is recorded."""
        placed = placed_shape(keys, path, self.reading)
        if placed is not None and placed.lost:
            self._say(self.findings.warn, placed.lost, self.reading.place(path))
        return placed

    def link(self, name: str, path: KeyPath) -> str | None:
        """The link with this name, `base` is the ground; None after an error."""
        if name in self.bodies:
            return name
        if name == BASE:
            return self.mechanism.root
        return self.reading.fail(path, f"there is no link '{name}'{did_you_mean(name, self.bodies)}")

    # --- contacts ---

    def _refusal(self, first: Side, second: Side) -> str:
        """Why two sides cannot touch, "" if they can."""
        one, other = self.bodies[first.link], self.bodies[second.link]
        if one == other == self.bodies[self.mechanism.root]:
            return f"link '{first.link}' stands still, and so does what it is to touch; name a link that moves"
        if first.link == second.link:
            return f"link '{first.link}' cannot touch itself; name two links"
        if one == other:
            links = f"links '{first.link}' and '{second.link}'"
            return f"{links} are joined rigidly; name links that move relative to each other"
        shapes = first.placed.shape, second.placed.shape
        if not is_possible(*shapes):
            words = " and ".join(f"a {in_words(shape)}" for shape in shapes)
            why = ", a mesh touches planes alone" * any(isinstance(shape, HullShape) for shape in shapes)
            return f"the contact of {words} is not simulated{why}; take capsules, boxes or spheres that come close"
        return ""

    def law(
        self, keys: ContactLawKeys, first: Side, second: Side, with_ground: bool, path: KeyPath
    ) -> ContactLaw | None:
        """The numbers of the rig, else of the robot file; None after an error, which is recorded."""
        surfaces = [side.surface for side in (first, second) if side.surface is not None]
        file = reduce(SurfaceFriction.larger, surfaces) if surfaces else None
        pair = keys.friction
        if pair is None and with_ground and self.ground is not None:
            pair = self.ground.friction
        if pair is None and file is not None:
            pair = FrictionPair((file.static, file.sliding))
        if pair is None:
            if with_ground:
                fix = f"; give it here or as 'mechanism.{GROUND}.friction'"
            else:
                fix = FRICTION_OF_SELF if path[-1] == SELF else f"; that of 'mechanism.{GROUND}' is of it alone"
            return self.reading.fail(path, f"missing key 'friction'{fix}")
        torsional, rolling = (0.0, 0.0) if file is None else (file.torsional, file.rolling)
        static, sliding = pair
        return ContactLaw(
            static,
            sliding,
            torsional if keys.torsional is None else keys.torsional,
            rolling if keys.rolling is None else keys.rolling,
            self._stiffness(keys.stiffness, first, second),
            keys.restitution,
        )

    def _stiffness(self, given: float | None, first: Side, second: Side) -> float | None:
        """None of a rigid contact."""
        if given is not None:
            return None if math.isinf(given) else float(given)
        return usual_stiffness(self.moving, lighter_mass((first.link, second.link), self.masses))

    def contact(self, name: str, first: Side, second: Side, law: ContactLaw, path: KeyPath) -> Contact:
        ends = (first.link, first.placed.pose), (second.link, second.placed.pose)
        return Contact(name, ends, (first.placed.shape, second.placed.shape), law, self.reading.place(path))


def _not_exact(law: ContactLaw, first: Side, second: Side) -> str:
    """Why a contact cannot be exact, "" if it can."""
    if law.torsional or law.rolling:
        return "an exact contact does not resist spinning and rolling; give 'torsional: 0' and 'rolling: 0'"
    if any(isinstance(side.placed.shape, TerrainShape) for side in (first, second)):
        return "an exact contact does not take a terrain, whose cells have edges; take a plane, or take 'exact' out"
    return ""


def check_exact(mechanism: Mechanism, reading: Reading) -> None:
    """Record exact contacts with too many points, and others beside them."""
    exact = [contact for contact in mechanism.contacts if contact.exact]
    if not exact:
        return
    if other := next((contact for contact in mechanism.contacts if not contact.exact), None):
        what = f"'{exact[0].name}' is exact, and '{other.name}' is not: they take different integrators"
        reading.errors.append(InputError(f"{what}; give both 'exact: true', or none", other.place))
    elif (points := sum(points_of(*contact.shapes) for contact in exact)) > MOST_EXACT_POINTS:
        what = f"the exact contacts have {points} points, at most {MOST_EXACT_POINTS} are simulated"
        reading.fail(("mechanism", "contacts"), f"{what}; leave some out, take spheres or points, or take 'exact' out")


def _is_ground(shape: CollisionShape) -> bool:
    return isinstance(shape.shape, HalfSpace | TerrainShape)


def part_of_name(link: str) -> str:
    """The name of a link as a part of the name of a contact."""
    return link.replace(PARTS_OF_NAME, "_")


def numbered(name: str, n: int) -> str:
    """The name of the contact of shape number n of a link, the first one without a number."""
    return name if n == 0 else f"{name}{PARTS_OF_NAME}{n + 1}"


def check_stiffness(mechanism: Mechanism, section: Mapping[str, YamlValue], step: float, reading: Reading) -> None:
    """Record stiffnesses in the section `mechanism` that are as if rigid to a step [s] of the integrator."""
    items = [(("mechanism", "contacts", i), item) for i, item in enumerate(section.get("contacts") or [])]
    items += [(("mechanism", SELF), {"name": SELF, **own})] if isinstance(own := section.get(SELF), dict) else []
    masses = body_masses(mechanism)
    for path, item in items:
        if not isinstance(item, dict) or item.get("stiffness") in (None, RIGID):
            continue
        of_entry = [contact for contact in mechanism.contacts if entry_of(contact) == item.get("name")]
        lighter = {contact.name: lighter_mass([link for link, _ in contact.ends], masses) for contact in of_entry}
        for contact in sorted(of_entry, key=lambda contact: lighter[contact.name])[:1]:
            largest, k, mass = (
                largest_stiffness(lighter[contact.name], step),
                contact.law.stiffness,
                lighter[contact.name],
            )
            if k is not None and k > largest:
                what = f"{k:.4g} N/m on {mass:.4g} kg are more than steps of {show_time(step * 1e9)} resolve"
                fix = f"give at most {largest:.1g} N/m, a smaller step, or '{RIGID}'"
                reading.fail((*path, "stiffness"), f"{what}; {fix}")


def entry_of(contact: Contact) -> str:
    """The name of the entry of a contact in the rig."""
    return contact.name.partition(PARTS_OF_NAME)[0]
