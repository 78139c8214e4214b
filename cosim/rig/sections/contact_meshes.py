"""The mesh of a contact: its convex hull."""

from __future__ import annotations

from cosim.core.errors import InputError
from cosim.core.paths import unreadable
from cosim.core.types import param, params
from cosim.mechanics.multibody.contact.hulls import hull_of
from cosim.mechanics.multibody.contact.shapes import HullShape
from cosim.mechanics.multibody.description.mesh_points import mesh_points
from cosim.rig.reading.schema import KeyPath, Reading


@params
class MeshKeys:
    file: str = param(doc="STL or OBJ; its convex hull touches")
    scale: float = param(above=0, default=1.0, doc="m per unit of the file, 0.001 of a file in mm")


def read_hull(keys: MeshKeys, path: KeyPath, reading: Reading) -> tuple[HullShape, str] | None:
    """(the hull, what it leaves out, in words); None after an error, which is recorded."""
    at = (*path, "file")
    file = reading.file(keys.file, at)
    if file is None:
        return None
    try:
        hull, count, outside = hull_of(keys.scale * mesh_points(file))
    except FileNotFoundError:
        return reading.fail(at, f"there is no file {file}")
    except OSError as error:
        return reading.fail(at, f"{file} cannot be read: {unreadable(error)}")
    except InputError as error:
        reading.errors.append(error)
        return None
    except ValueError as error:
        return reading.fail(at, f"{file} {error}; give a mesh that encloses one")
    if outside == 0.0:
        return hull, ""
    what = f"the hull of {file.name} has {count:,} corners, of which {len(hull.corners)} are taken"
    return (
        hull,
        f"{what}; the others lie outside of it by at most {outside * 1e3:.2g} mm",
    )
