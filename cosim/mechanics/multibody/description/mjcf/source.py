"""The text of an MJCF file and of what it includes: the lines of its elements, and the angles as they are written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from cosim.core.errors import InputError, SourceLocation
from cosim.core.paths import read_file
from cosim.mechanics.multibody.description.xmltree import XmlElement, parse_xml, written_numbers

TREE = "worldbody"
# what an element is, in words -> the section that holds it, and its tags there, () for any
PLACES: dict[str, tuple[str, tuple[str, ...]]] = {
    "body": (TREE, ("body",)),
    "joint": (TREE, ("joint", "freejoint")),
    "geom": (TREE, ("geom",)),
    "tendon": ("tendon", ()),
    "equality": ("equality", ()),
    "actuator": ("actuator", ()),
    "keyframe": ("keyframe", ("key",)),
}


@dataclass(frozen=True)
class MjcfSource:
    """The elements of a file, what it includes in its place, each with the tag of its section."""

    file: str
    elements: Sequence[tuple[str, XmlElement]]

    @classmethod
    def of(cls, file: str) -> MjcfSource:
        """Of a file that MuJoCo reads. Without the elements of a file that this program cannot read."""
        return cls(file, list(_elements(Path(file))))

    def place(self, kind: str, name: str) -> SourceLocation:
        """The place of the element `name`, without a line where none is called so. kind: what it is, in words."""
        key = f"{kind} '{name}'"
        section, tags = PLACES.get(kind, ("", ()))
        for tag in tags or ("",):
            if (found := self._named.get((section, tag, name))) is not None:
                return SourceLocation(found.file, found.line, key)
        return SourceLocation(self.file, key=key)

    def section(self, tag: str) -> SourceLocation:
        """The place of a section, which a file may not have."""
        found = next((each for section, each in self.elements if section == each.tag == tag), None)
        key = f"<{tag}>"
        return SourceLocation(self.file, key=key) if found is None else SourceLocation(found.file, found.line, key)

    def angles(self) -> Iterator[tuple[SourceLocation, Sequence[float]]]:
        """(place, Euler angles [rad]) of every frame of a file in radians; a file without a unit is in degrees."""
        compilers = [each.attributes for section, each in self.elements if section == each.tag == "compiler"]
        if [said["angle"] for said in compilers if "angle" in said][-1:] != ["radian"]:
            return
        for section, element in self.elements:
            angles = written_numbers(element.attributes.get("euler", ""))
            if section == TREE and angles:
                name = element.attributes.get("name")
                key = f"{element.tag} '{name}'" if name else f"<{element.tag}>"
                yield SourceLocation(element.file, element.line, key), angles

    @cached_property
    def _named(self) -> dict[tuple[str, str, str], XmlElement]:
        """(section, tag or "", name) -> the first element."""
        found: dict[tuple[str, str, str], XmlElement] = {}
        for section, element in self.elements:
            if name := element.attributes.get("name"):
                found.setdefault((section, element.tag, name), element)
                found.setdefault((section, "", name), element)
        return found


def _elements(main: Path) -> Iterator[tuple[str, XmlElement]]:
    """In the order of the file. MuJoCo looks for an included file beside the outermost one, and takes each once."""
    taken = {main}
    waiting = [("", element) for element in reversed(_children(main))]
    while waiting:
        section, element = waiting.pop()
        if element.tag == "include":
            near = [folder / element.attributes.get("file", "") for folder in (main.parent, Path(element.file).parent)]
            inside = next((file for file in near if file not in taken and file.is_file()), None)
            taken.update(near)
            waiting += [(section, child) for child in reversed([] if inside is None else _children(inside))]
            continue
        section = section or element.tag
        yield section, element
        waiting += [(section, child) for child in reversed(element.children)]


def _children(path: Path) -> list[XmlElement]:
    try:
        return parse_xml(read_file(path), str(path)).children
    except (OSError, InputError):
        return []
