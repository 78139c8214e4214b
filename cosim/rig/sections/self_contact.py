"""The key `mechanism.self_contact`: contacts between the collision shapes of the links of a robot file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from cosim.core.types import param
from cosim.mechanics.multibody.contact.gaps import MOST_POINTS, is_possible, points_of
from cosim.mechanics.multibody.contact.shape_words import in_words
from cosim.mechanics.multibody.mechanism import Contact
from cosim.rig.reading.schema import READERS, KeyPath, Reading, as_boolean, read, show
from cosim.rig.reading.yaml_source import YamlValue
from cosim.rig.sections.contact_laws import ContactLawKeys
from cosim.rig.sections.contact_limits import ContactLimitKeys
from cosim.rig.sections.contacts import PARTS_OF_NAME, SELF, ContactReader, Side, numbered, part_of_name
from cosim.rig.sections.joint_definition import keyed

AT = ("mechanism", SELF)


class LinkPairs(tuple):
    """Pairs of names of links."""


@keyed
class SelfContactKeys(ContactLawKeys):
    pairs: LinkPairs | None = param(default=None, doc="links of the robot file; default: all that no joint connects")
    limits: ContactLimitKeys = param(default=ContactLimitKeys(), doc="of each contact of two links")


class SelfContact(tuple):
    """(keys,) where links of a robot touch each other, () where they do not."""


def _pairs(
    reading: Reading, hint: object, value: YamlValue, meta: Mapping[str, Any], path: KeyPath
) -> LinkPairs | None:
    def is_pair(item: YamlValue) -> bool:
        return isinstance(item, list) and len(item) == 2 and all(isinstance(name, str) for name in item)

    wrong = [item for item in value if not is_pair(item)] if isinstance(value, list) else [value]
    if wrong:
        return reading.fail(path, f"expected a list of pairs of links, such as [[a, b]], got {show(wrong[0])}")
    return LinkPairs(map(tuple, value))


def _short(
    reading: Reading, hint: object, value: YamlValue, meta: Mapping[str, Any], path: KeyPath
) -> SelfContact | None:
    """`true` is short for a section without keys, a list for its pairs."""
    if (truth := as_boolean(value)) is not None:
        value = {}
        if not truth:
            return SelfContact()
    if not isinstance(value, list | dict):
        what = "expected true, a list of pairs of links, or a section with 'pairs'"
        return reading.fail(path, f"{what}, got {show(value)}")
    keys = read(SelfContactKeys, {"pairs": value} if isinstance(value, list) else value, path, reading)
    return None if keys is None else SelfContact((keys,))


READERS[LinkPairs] = _pairs
READERS[SelfContact] = _short


def self_contacts(keys: SelfContactKeys, others: Sequence[Contact], reader: ContactReader) -> list[Contact]:
    """One contact for each pair of shapes of each pair of links; errors and remarks are recorded. others: contacts
    beside these."""
    reading, before = reader.reading, len(reader.reading.errors)
    if reader.collisions is None:
        reading.fail(AT, "the bodies of a rig have no collision shapes; give contacts in 'mechanism.contacts'")
        return []
    pairs = list(_not_adjacent(reader) if keys.pairs is None else _given(keys.pairs, reader))
    found: list[Contact] = []
    impossible: dict[str, int] = {}
    for first, second in pairs:
        own = [(a, b) for a in _sides(first, reader) for b in _sides(second, reader)]
        for n, (a, b) in enumerate(own):
            shapes = a.placed.shape, b.placed.shape
            if not is_possible(*shapes):
                words = " and ".join(sorted(map(in_words, shapes)))
                impossible[words] = impossible.get(words, 0) + 1
                continue
            law = reader.law(keys, a, b, False, AT)
            if law is None:
                return []
            name = numbered(PARTS_OF_NAME.join((SELF, part_of_name(first), part_of_name(second))), n)
            found.append(replace(reader.contact(name, a, b, law, AT), limits=keys.limits.bounds))
    if impossible:
        each = ", ".join(f"{n} of {words}" for words, n in impossible.items())
        reader.findings.warn(f"pairs of shapes whose contact is not simulated: {each}", reading.place(AT))
    points = sum(points_of(*contact.shapes) for contact in (*others, *found))
    if not found and len(reading.errors) == before:
        reading.fail(AT, "no pair of shapes is left; take it out, or give contacts in 'mechanism.contacts'")
    if points > MOST_POINTS:
        what = f"with it the contacts have {points} points, at most {MOST_POINTS} are simulated"
        reading.fail(AT, f"{what}; give the pairs of links that may touch")
    return found


def _given(pairs: LinkPairs, reader: ContactReader) -> Iterator[tuple[str, str]]:
    """The pairs of the rig that can touch; others are recorded."""
    for k, pair in enumerate(pairs):
        at, links = (*AT, "pairs", k), [reader.link(link, (*AT, "pairs", k)) for link in pair]
        first, second = links
        if first is None or second is None:
            continue
        if reader.bodies[first] == reader.bodies[second]:
            what = f"links '{first}' and '{second}' do not move relative to each other"
            reader.reading.fail(at, f"{what}; name two others")
            continue
        wrong = [(link, why) for link in (first, second) if isinstance(why := reader.sides_of(link), str)]
        for link, why in wrong:
            reader.reading.fail(at, f"link '{link}' {why}")
        if not wrong:
            yield first, second


def _not_adjacent(reader: ContactReader) -> Iterator[tuple[str, str]]:
    """Pairs of links with shapes whose bodies no joint connects, through bodies without mass neither."""
    bodies, masses = reader.bodies, reader.masses
    above = {bodies[joint.child]: bodies[joint.parent] for joint in reader.mechanism.joints if joint.kind != "fixed"}

    def body_below(body: str) -> str:
        """The body that carries another one."""
        for _ in range(len(above)):
            body = above.get(body, body)
            if masses[body]:
                break
        return body

    links = [link for link in dict.fromkeys(each.link for each in reader.collisions or ()) if _sides(link, reader)]
    for first, second in combinations(links, 2):
        one, other = bodies[first], bodies[second]
        if one != other and body_below(one) != other and body_below(other) != one:
            yield first, second


def _sides(link: str, reader: ContactReader) -> list[Side]:
    found = reader.sides_of(link)
    return [] if isinstance(found, str) else found
