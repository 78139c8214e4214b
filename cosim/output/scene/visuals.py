"""The visuals of the links of a URDF or xacro file: boxes, cylinders, spheres, meshes.

Format: the URDF XML specification, https://wiki.ros.org/urdf/XML. Errors of a visual are notes: it is not shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from cosim.core.errors import InputError
from cosim.core.paths import find_package, irregular, locate
from cosim.mechanics.multibody.description.diagnostics import Diagnostics
from cosim.mechanics.multibody.description.urdf import read_text
from cosim.mechanics.multibody.description.xacro import expand_xacro, uses_xacro
from cosim.mechanics.multibody.description.xmltree import XmlElement, parse_xml
from cosim.mechanics.multibody.mechanism import Pose, pose_of
from cosim.output.scene.scene import Color, ShapeKind

MESHES = (".dae", ".stl", ".obj", ".glb", ".gltf")


Shown = tuple[dict[str, list["Visual"]], list[str]]  # link -> its visuals, notes on those that cannot be shown


class Visual(NamedTuple):
    """See `Shape`; pose: in the link."""

    kind: ShapeKind
    pose: Pose
    size: tuple[float, float, float]
    color: Color | None
    file: str


def read_visuals(path: Path, xacro_arguments: Mapping[str, str], packages: Sequence[Path]) -> Shown:
    """Of a URDF or xacro file. Raises InputError for a file that cannot be read."""
    robot = parse_xml(read_text(path), str(path))
    if uses_xacro(robot):
        robot = expand_xacro(
            robot, xacro_arguments, lambda name: find_package(name, packages, path.parent), Diagnostics()
        )
    colors = {material.attributes.get("name", ""): _color(material) for material in _children(robot, "material")}
    found: dict[str, list[Visual]] = {}
    notes: list[str] = []
    for link in _children(robot, "link"):
        name = link.attributes.get("name", "")
        for element in _children(link, "visual"):
            try:
                found.setdefault(name, []).append(_visual(element, colors, path, packages))
            except InputError as error:
                notes.append(f"a visual of link '{name}' is not shown: {error.what}")
            except (ValueError, IndexError):
                notes.append(f"a visual of link '{name}' is not shown: line {element.line} is not as URDF has it")
    return found, notes


def _visual(element: XmlElement, colors: Mapping[str, Color | None], path: Path, packages: Sequence[Path]) -> Visual:
    shape = _children(_children(element, "geometry")[0])[0]
    kind, size, file = _geometry(shape, path, packages)
    color = None
    for material in _children(element, "material"):
        color = _color(material) or colors.get(material.attributes.get("name", ""))
    return Visual(kind, _pose(element), size, color, file)


def _geometry(
    shape: XmlElement, path: Path, packages: Sequence[Path]
) -> tuple[ShapeKind, tuple[float, float, float], str]:
    """(kind, size, file of a mesh). Raises InputError, ValueError or IndexError for what cannot be shown."""

    def number(key: str) -> float:
        return float(shape.attributes.get(key, ""))

    if shape.tag == "box":
        return "box", three(shape.attributes.get("size", "")), ""
    if shape.tag == "sphere":
        diameter = 2.0 * number("radius")
        return "ellipsoid", (diameter, diameter, diameter), ""
    if shape.tag == "cylinder":
        diameter = 2.0 * number("radius")
        return "cylinder", (diameter, diameter, number("length")), ""
    if shape.tag != "mesh":
        raise InputError(f"the geometry <{shape.tag}> is unknown")
    file = _mesh(shape.attributes.get("filename", ""), path, packages)
    return "mesh", three(shape.attributes.get("scale", "1 1 1")), str(file)


def _mesh(name: str, path: Path, packages: Sequence[Path]) -> Path:
    """Raises InputError for a file that does not exist or has another format."""
    return mesh_file(name, locate(name.removeprefix("file://"), path.parent, packages))


def mesh_file(name: str, file: Path) -> Path:
    """The file of a mesh called `name`. Raises InputError for one that does not exist or has another format."""
    if file.suffix.lower() not in MESHES:
        raise InputError(f"the mesh '{name}' is none of {', '.join(MESHES)}")
    if kind := irregular(file):
        raise InputError(f"'{file}' is {kind}, no mesh")
    if not file.is_file():
        raise InputError(f"there is no file '{file}'")
    return file.resolve()


def _pose(element: XmlElement) -> Pose:
    for origin in _children(element, "origin"):
        return pose_of(*(three(origin.attributes.get(key, "0 0 0")) for key in ("xyz", "rpy")))
    return Pose.identity()


def _color(material: XmlElement) -> Color | None:
    for color in _children(material, "color"):
        red, green, blue, opacity = map(float, color.attributes.get("rgba", "").split())
        return red, green, blue, opacity
    return None


def three(text: str) -> tuple[float, float, float]:
    x, y, z = map(float, text.split())
    return x, y, z


def _children(element: XmlElement, tag: str | None = None) -> list[XmlElement]:
    return [child for child in element.children if tag is None or child.tag == tag]
