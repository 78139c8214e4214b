"""The points of a mesh file: STL (binary or text) and OBJ. Of triangles and their order nothing is kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cosim.core.errors import InputError, SourceLocation, shortened
from cosim.core.paths import open_file
from cosim.core.types import Array
from cosim.mechanics.multibody.description.xmltree import written_numbers

MOST_POINTS_OF_MESH = 3_000_000
STL, OBJ = ".stl", ".obj"
HEAD, TRIANGLE = 84, 50  # bytes of a binary STL: before its triangles, and of each
# of the lines of text: the word before the numbers of a point
WORD = {STL: "vertex", OBJ: "v"}


def mesh_points(file: Path) -> Array:
    """(n, 3) without repetition, in the units of the file. Raises InputError for what is no mesh, OSError for a file
    that cannot be read."""
    ending = file.suffix.lower()
    if ending not in WORD:
        raise InputError(f"is no mesh that is read; give a file {STL} or {OBJ}", str(file))
    with open_file(file) as opened:
        data = opened.read()
    points = _of_binary(data) if ending == STL and _is_binary(data) else _of_text(data, ending, file)
    if not len(points):
        raise InputError("has no points; export the mesh again", str(file))
    if len(points) > MOST_POINTS_OF_MESH:
        what = f"has {len(points):,} points, at most {MOST_POINTS_OF_MESH:,} are taken"
        raise InputError(f"{what}; make the mesh coarser", str(file))
    if not np.isfinite(points).all():
        raise InputError("has points that are not finite; export the mesh again", str(file))
    return np.unique(points, axis=0)


def _is_binary(data: bytes) -> bool:
    """Judged by its length: binary files may begin with `solid` too."""
    return len(data) >= HEAD and len(data) == HEAD + TRIANGLE * _count(data)


def _count(data: bytes) -> int:
    return int.from_bytes(data[HEAD - 4 : HEAD], "little")


def _of_binary(data: bytes) -> Array:
    triangle = np.dtype([("normal", "<f4", 3), ("points", "<f4", (3, 3)), ("attribute", "<u2")])
    return np.frombuffer(data, triangle, offset=HEAD)["points"].reshape(-1, 3).astype(float)


def _of_text(data: bytes, ending: str, file: Path) -> Array:
    if ending == STL and not data.lstrip().startswith(b"solid"):
        what = "is neither a text that begins with 'solid' nor as long as its count of triangles needs"
        raise InputError(f"{what}; export the mesh as STL again", str(file))
    points = []
    for line, text in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        word, _, rest = text.strip().partition(" ")
        if word == WORD[ending]:
            numbers = written_numbers(rest)
            if len(numbers) < 3:
                what = f"expected three numbers after '{word}', got '{shortened(text.strip())}'"
                raise InputError(what, SourceLocation(str(file), line))
            points.append(numbers[:3])
    return np.array(points, dtype=float).reshape(-1, 3)
