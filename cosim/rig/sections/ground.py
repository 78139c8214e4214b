"""The section `mechanism.ground`: the plane or the terrain of contacts `with: ground`, and its friction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cosim.core.errors import InputError, SourceLocation, shortened
from cosim.core.paths import open_file, unreadable
from cosim.core.types import Array, param, params
from cosim.mechanics.multibody.contact.shapes import ContactShape, HalfSpace, TerrainShape
from cosim.mechanics.multibody.description.collisions import CollisionShape, SurfaceFriction
from cosim.mechanics.multibody.description.diagnostics import Diagnostics
from cosim.mechanics.multibody.description.xmltree import written_numbers
from cosim.mechanics.multibody.mechanism import Pose, pose_of
from cosim.rig.reading.schema import Reading
from cosim.rig.sections.contact_laws import FrictionPair
from cosim.rig.sections.geometry import ORIGIN, Vector

GROUND = "ground"
MOST_HEIGHTS = 1_000_000
NUMPY = b"\x93NUMPY"


@params
class TerrainKeys:
    file: str = param(doc="heights in m: a CSV file of numbers, or a `.npy` file with an array (n, m)")
    spacing: float = param(unit="m", above=0, doc="of the points, along x from row to row, along y in a row")


@params
class GroundKeys:
    friction: FrictionPair | None = param(min=0, default=None, doc="of contacts `with: ground` that give none")
    xyz: Vector | None = param(unit="m", default=None, doc="a point of the plane, or the middle of the terrain")
    rpy: Vector | None = param(unit="rad", default=None, doc="how it is turned; its z points up")
    terrain: TerrainKeys | None = param(default=None, doc="heights above the plane")


@dataclass(frozen=True)
class Ground:
    """What contacts `with: ground` touch: a shape at a pose in the link that does not move. friction: of the rig;
    surface: of the robot file."""

    shape: ContactShape
    pose: Pose
    friction: FrictionPair | None = None
    surface: SurfaceFriction | None = None


def read_ground(
    keys: GroundKeys | None, offered: Sequence[CollisionShape], reading: Reading, findings: Diagnostics
) -> Ground | None:
    """None after an error, which is recorded. offered: planes and terrains of the robot file on what does not move, of
    which a single one is the ground unless the rig gives another."""
    given, at = keys or GroundKeys(), ("mechanism", GROUND)
    if given.terrain is None and given.xyz is None and given.rpy is None and offered:
        if len(offered) > 1:
            what = f"the robot file has {len(offered)} planes and terrains that stand"
            return reading.fail(at, f"{what}; give the ground by xyz and rpy")
        (found,) = offered
        assert found.shape is not None
        findings.note(f"contacts with the ground are with this {found.kind}", found.place)
        return Ground(found.shape, found.pose, given.friction, found.friction)
    shape: ContactShape | None = HalfSpace()
    if given.terrain is not None:
        shape = _terrain(given.terrain, (*at, "terrain"), reading)
    pose = pose_of(given.xyz or ORIGIN, given.rpy or ORIGIN)
    return None if shape is None else Ground(shape, pose, given.friction)


def _terrain(keys: TerrainKeys, path: tuple, reading: Reading) -> TerrainShape | None:
    """The middle of the grid is at the origin. None after an error, which is recorded."""
    file = reading.file(keys.file, (*path, "file"))
    if file is None:
        return None
    try:
        heights = _heights(file)
    except FileNotFoundError:
        return reading.fail((*path, "file"), f"there is no file {file}")
    except OSError as error:
        return reading.fail((*path, "file"), f"{file} cannot be read: {unreadable(error)}")
    except InputError as error:
        reading.errors.append(error)
        return None
    x, y = (keys.spacing * (np.arange(n) - 0.5 * (n - 1)) for n in heights.shape)
    return TerrainShape(x, y, heights)


def _heights(file: Path) -> Array:
    """(n, m) [m]. Raises InputError for what is no grid of numbers, OSError for a file that cannot be read."""
    with open_file(file) as opened:
        head = opened.read(len(NUMPY))
        opened.seek(0)
        if head == NUMPY:
            try:
                found = np.load(opened, allow_pickle=False)
            except (ValueError, EOFError) as error:
                raise InputError(f"cannot be read as NumPy: {error}; write it by numpy.save", str(file)) from None
        else:
            found = _rows(opened.read(), file)
    if found.ndim != 2 or min(found.shape) < 2 or found.dtype.kind not in "fiu":
        what = f"has numbers of shape {found.shape}"
        raise InputError(f"{what}; a terrain has rows and columns of heights, 2 or more of each", str(file))
    if found.size > MOST_HEIGHTS:
        raise InputError(f"has {found.size:,} heights, at most {MOST_HEIGHTS:,} are taken; make it coarser", str(file))
    heights = np.array(found, dtype=float)
    if len(lacking := np.argwhere(~np.isfinite(heights))):
        row, column = lacking[0].tolist()
        what = f"the height in row {row + 1}, column {column + 1} is {heights[row, column]:g}"
        raise InputError(f"{what}; give a number", str(file))
    return heights


def _rows(data: bytes, file: Path) -> Array:
    """Of lines of numbers, with commas, semicolons or blanks between them; lines that begin with # are left out."""
    rows: list[list[float]] = []
    for line, text in enumerate(data.decode("utf-8-sig", "replace").splitlines(), 1):
        words = text.partition("#")[0].replace(",", " ").replace(";", " ").split()
        if not words:
            continue
        numbers = written_numbers(" ".join(words))
        if not numbers:
            raise InputError(f"expected heights in m, got '{shortened(text)}'", SourceLocation(str(file), line))
        rows.append(numbers)
        if len(numbers) != len(rows[0]):
            what = f"heights: {len(numbers)} in this row, {len(rows[0])} in the first; give as many in each"
            raise InputError(what, SourceLocation(str(file), line))
    return np.array(rows)
