"""The visuals of the links of an SDF file: boxes, cylinders, spheres, ellipsoids, meshes.

Format: http://sdformat.org/spec. Errors of a visual are notes: it is not shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cosim.core.errors import InputError
from cosim.mechanics.multibody.description.sdf.files import SdfFiles
from cosim.mechanics.multibody.description.sdf.reader import SdfReader
from cosim.mechanics.multibody.description.sdf.values import children
from cosim.mechanics.multibody.description.xmltree import XmlElement
from cosim.output.scene.scene import Color, ShapeKind
from cosim.output.scene.visuals import Shown, Visual, mesh_file, three

Geometry = tuple[ShapeKind, tuple[float, float, float], str]  # kind, size, file of a mesh


def read_sdf_visuals(path: Path, model: str | None, packages: Sequence[Path]) -> Shown:
    """Of the links of a model. Raises InputError for a file that cannot be read."""
    reader = SdfReader(path, packages)
    found: dict[str, list[Visual]] = {}
    notes: list[str] = []
    for link, element, pose in reader.visuals(model):
        try:
            kind, size, file = _geometry(element, reader.files)
            found.setdefault(link, []).append(Visual(kind, pose, size, _color(element), file))
        except InputError as error:
            notes.append(f"a visual of link '{link}' is not shown: {error.what}")
        except (ValueError, IndexError):
            notes.append(f"a visual of link '{link}' is not shown: line {element.line} is not as SDF has it")
    return found, notes


def _geometry(visual: XmlElement, files: SdfFiles) -> Geometry:
    """Raises InputError, ValueError or IndexError for what cannot be shown."""
    shape = children(visual, "geometry")[0].children[0]

    def text(key: str) -> str:
        return children(shape, key)[0].text

    if shape.tag == "box":
        return "box", three(text("size")), ""
    if shape.tag == "sphere":
        diameter = 2.0 * float(text("radius"))
        return "ellipsoid", (diameter, diameter, diameter), ""
    if shape.tag == "ellipsoid":
        a, b, c = three(text("radii"))
        return "ellipsoid", (2.0 * a, 2.0 * b, 2.0 * c), ""
    if shape.tag in ("cylinder", "capsule"):
        diameter = 2.0 * float(text("radius"))
        return "cylinder", (diameter, diameter, float(text("length"))), ""
    if shape.tag != "mesh":
        raise InputError(f"the geometry <{shape.tag}> is not drawn")
    uri = text("uri")
    scale = three(text("scale")) if children(shape, "scale") else (1.0, 1.0, 1.0)
    return "mesh", scale, str(mesh_file(uri, files.located(uri.removeprefix("file://"), Path(shape.file))))


def _color(visual: XmlElement) -> Color | None:
    for material in children(visual, "material"):
        for color in [*children(material, "diffuse"), *children(material, "ambient")]:
            red, green, blue, *opacity = map(float, color.text.split())
            return red, green, blue, opacity[0] if opacity else 1.0
    return None
