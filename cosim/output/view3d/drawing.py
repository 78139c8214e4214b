"""A mechanism to be drawn: its scene, the poses of its bodies, what is fixed to them; and as text, for recordings and
streams: shapes, and poses as arithmetic.

The text holds no path and no code, and may come from anybody. What is read is checked to be finite numbers, short texts
and shapes of known kinds; the size is bounded. The way from a rig to a drawing is `cosim.rig.scene`.
"""

from __future__ import annotations

import json
import math
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, get_args

import numpy as np

from cosim.core.compile.portable import PortableFunction
from cosim.core.errors import InputError
from cosim.output.scene.scene import ROLE_COLORS, Scene, SceneBody, ScenePose, SceneSpring, Shape, ShapeKind, rotated
from cosim.output.view3d.view import FixedLink, View, contact_columns, in_link_frames, joint_columns

Poses = Callable[..., np.ndarray]

VERSION = 1
MOST_BYTES = 32_000_000  # of the text after decompression
LONGEST_TEXT = 1_000  # characters of a name or a note
STANDS = "a motion of the mechanism is given by a table, so it is shown as it was at the start"
KINDS = tuple(kind for kind in get_args(ShapeKind) if kind != "mesh")  # a mesh is a file


@dataclass(frozen=True)
class Drawing:
    """A mechanism to be drawn, before a run has signals: its scene, the poses of its bodies, what is fixed to them.

    poses: (positions (k, nq), times (k,) where the scene is `timed`) -> axes and origins (k, n, 3, 4) of the moving
    bodies; mounts: (n, 3, 4) of the links that bodies are named after, in their bodies; links: the others, and named
    frames; carried: joint -> the body that it moves.
    """

    scene: Scene
    poses: Poses
    mounts: np.ndarray
    links: tuple[FixedLink, ...]
    carried: Mapping[str, str]

    def view(self, joints: Sequence[str], signals: Sequence[str], rate: float) -> View | None:
        """What the messages of a run are made of, from these signals; None where positions are not among them.
        joints: with a position each; rate [Hz]: of simulated time."""
        places = {name: column for column, name in enumerate(signals)}
        columns = [places.get(f"{name}/position") for name in self.scene.coordinates]
        if None in columns:
            return None
        found = tuple(column for column in columns if column is not None)
        shown = in_link_frames(self.scene, self.mounts)
        moving = joint_columns(joints, signals)
        return View(shown, self.poses, self.mounts, found, self.links, moving, rate, contact_columns(signals))


def write_drawing(drawing: Drawing, poses: PortableFunction | None) -> str:
    """poses: of the drawing, None where they are not arithmetic alone."""
    notes = drawing.scene.notes if poses is not None else (*drawing.scene.notes, STANDS)
    data = {
        "version": VERSION,
        "scene": {**asdict(drawing.scene), "notes": [note[:LONGEST_TEXT] for note in notes]},
        "poses": None if poses is None else poses.as_data(),
        "mounts": drawing.mounts.tolist(),
        "links": drawing.links,
        "carried": dict(drawing.carried),
    }
    return b64encode(zlib.compress(json.dumps(data).encode())).decode()


def read_drawing(text: Any, place: str) -> Drawing:
    """place: of the text, for messages. Raises InputError for an invalid text."""
    if not text:
        raise InputError("has no drawing of its mechanism; runs that this version records or publishes have one", place)
    try:
        packed = zlib.decompressobj()
        data = json.loads(packed.decompress(b64decode(text, validate=True), MOST_BYTES))
        if data["version"] != VERSION:
            raise InputError(f"its drawing is of version {data['version']!r}, and this reads {VERSION}", place)
        return _drawing(data)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, zlib.error, RecursionError):
        raise InputError("its drawing is damaged", place) from None


def _drawing(data: Mapping[str, Any]) -> Drawing:
    scene = _scene(data["scene"])
    count, names = len(scene.bodies) - 1, {body.name for body in scene.bodies}
    mounts = np.array([_numbers(row, 4) for mount in data["mounts"] for row in mount], float).reshape(count, 3, 4)
    links = tuple(FixedLink(_text(name), _text(parent), _pose(pose)) for name, parent, pose in data["links"])
    carried = {_text(joint): _text(body) for joint, body in data["carried"].items()}
    if not names.issuperset(link.parent for link in links):
        raise ValueError("a link on a body that is not there")
    return Drawing(scene, _poses(data["poses"], scene), mounts, links, carried)


def _poses(data: Any, scene: Scene) -> Poses:
    start = np.array([np.column_stack([_axes(body.pose), body.pose.position]) for body in scene.bodies[1:]])
    start = start.reshape(-1, 3, 4)
    if data is None:
        return lambda q, *t: np.repeat(start[None], len(q), axis=0)
    found = PortableFunction.from_data(data)
    if found.sizes != (len(scene.coordinates), *([1] if scene.timed else [])) or found.shape != start.shape:
        raise ValueError("poses of another mechanism")
    return found


def _axes(pose: ScenePose) -> np.ndarray:
    return np.column_stack([rotated(pose.wxyz, axis) for axis in np.eye(3)])


def _scene(data: Mapping[str, Any]) -> Scene:
    bodies = tuple(
        SceneBody(_text(name), _whole(parent), _pose(pose), tuple(_shape(shape) for shape in shapes))
        for name, parent, pose, shapes in data["bodies"]
    )
    springs = tuple(SceneSpring(_text(name), _end(start), _end(end)) for name, start, end in data["springs"])
    ends = [end for spring in springs for end in (spring.start, spring.end)]
    if not bodies or not all(0 <= body < len(bodies) for body, _ in ends):
        raise ValueError("a spring on a body that is not there")
    return Scene(
        name=_text(data["name"]),
        bodies=bodies,
        springs=springs,
        coordinates=_texts(data["coordinates"]),
        extent=_positive(data["extent"]),
        floor=_number(data["floor"]),
        closed=bool(data["closed"]),
        timed=bool(data["timed"]),
        notes=_texts(data["notes"]),
        force_length=_number(data.get("force_length", 0.0)),  # none in drawings of former versions
    )


def _shape(data: Sequence[Any]) -> Shape:
    kind, role, link, pose, size, color, _ = data
    if kind not in KINDS or role not in ROLE_COLORS:
        raise ValueError("a shape of an unknown kind")
    shown = None if color is None else _numbers(color, 4)
    return Shape(kind, role, _text(link), _pose(pose), _numbers(size, 3), shown)


def _end(data: Sequence[Any]) -> tuple[int, tuple[float, float, float]]:
    body, point = data
    return _whole(body), _numbers(point, 3)


def _pose(data: Sequence[Any]) -> ScenePose:
    position, wxyz = data
    found = ScenePose(_numbers(position, 3), _numbers(wxyz, 4))
    if not math.isclose(math.hypot(*found.wxyz), 1.0, abs_tol=1e-6):
        raise ValueError("an orientation that is none")
    return found


def _numbers(data: Sequence[Any], count: int) -> Any:
    if len(data) != count:
        raise ValueError("of another length")
    return tuple(map(_number, data))


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError("expected a finite number")
    return float(value)


def _positive(value: Any) -> float:
    if (found := _number(value)) <= 0.0:
        raise ValueError("expected a number above 0")
    return found


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < -1:
        raise TypeError("expected a whole number")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        raise TypeError("expected a short text")
    return value


def _texts(values: Sequence[Any]) -> tuple[str, ...]:
    return tuple(map(_text, values))
