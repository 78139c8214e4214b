"""The mechanism in 3D, with the references as a ghost and joints at their limits marked, and how it looks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cosim.core.errors import InputError
from cosim.core.paths import check_file
from cosim.output.scene.scene import ROLE_COLORS, TOUCHING, Scene, Shape, quaternions
from cosim.output.view3d.contact_arrows import ForceArrow, arrows_of
from cosim.output.view3d.view import contact_columns

if TYPE_CHECKING:
    import viser

    from cosim.output.view3d.drawing import Drawing

GHOST = (209, 96, 61)
AT_LIMIT = (214, 48, 49)
SPRING = (63, 156, 104)


class Poses:
    """Of one mechanism: from rows with these signals to positions (n, 3) [m] and quaternions (n, 4) of its moving
    bodies."""

    def __init__(self, drawing: Drawing, signals: Mapping[str, int]) -> None:
        """signals: name -> column. Raises InputError if the position of a joint is not among them."""
        names = drawing.scene.coordinates
        if lacking := [name for name in names if f"{name}/position" not in signals]:
            raise InputError(f"there is no signal '{lacking[0]}/position'", drawing.scene.name)
        self.drawing = drawing
        self._columns = np.array([signals[f"{name}/position"] for name in names], dtype=int)
        references = [signals.get(f"{name}/reference_position", -1) for name in names]
        self._references = np.array(references, dtype=int)
        self._contacts = contact_columns(list(signals))
        # a loop does not close at positions that are chosen one by one
        self.has_reference = bool((self._references >= 0).any()) and not drawing.scene.closed

    def actual(self, row: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray]:
        """row: (number of signals,)"""
        return self._poses(row[self._columns], t)

    def forces(self, row: np.ndarray) -> list[ForceArrow]:
        """Of the contacts that touch."""
        return arrows_of(self._contacts, self.drawing.scene, row)

    def reference(self, row: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray]:
        """At the references; at the actual position of a joint that has none."""
        q = row[self._columns]
        return self._poses(np.where(self._references >= 0, row[self._references], q), t)

    def _poses(self, q: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray]:
        at = (np.array([t]),) if self.drawing.scene.timed else ()
        poses = self.drawing.poses(q[None], *at)[0]
        return poses[:, :, 3], quaternions(poses[:, :, :3])


def light(server: viser.ViserServer) -> None:
    """The light of an empty scene, before a browser draws it."""
    server.scene.world_axes.visible = False
    # most of the time of a picture where no GPU draws it: a remote desktop, a virtual machine
    server.scene.configure_environment_map(None)
    server.scene.configure_default_lights(cast_shadow=False)
    server.scene.add_light_hemisphere("/sky", sky_color=(255, 255, 255), ground_color=(150, 150, 150), intensity=2.5)


class ScenePanel:
    """Poses are given per moving body: body k of the scene is row k − 1."""

    def __init__(self, server: viser.ViserServer, scene: Scene) -> None:
        self.server, self.scene = server, scene
        self.meshes: dict[str, Any] = {}
        self.ghost_shown, self.inertia_shown = True, False
        extent = scene.extent
        self.grid = server.scene.add_grid(
            "/floor",
            width=8 * extent,
            height=8 * extent,
            cell_size=_round(extent / 4),
            section_size=_round(extent / 4) * 5,
            position=(0.0, 0.0, scene.floor - 1e-3 * extent),
            infinite_grid=True,
            fade_distance=6 * extent,
        )
        self.bodies = [server.scene.add_frame(f"/robot/{k}", show_axes=False) for k in range(len(scene.bodies))]
        self.ghosts: list[Any] = []  # added when they are shown first
        self.inertias: list[Any] = []
        self.marks: dict[str, Any] = {}
        for k, body in enumerate(scene.bodies):
            self.bodies[k].position, self.bodies[k].wxyz = body.pose
            for i, shape in enumerate(body.shapes):
                self._add(f"/robot/{k}/{i}", shape)
            if k:
                self.marks[body.name] = server.scene.add_icosphere(
                    f"/robot/{k}/limit", radius=0.075 * extent, color=AT_LIMIT, opacity=0.45, visible=False
                )
        self.springs = None
        if scene.springs:
            points = np.zeros((len(scene.springs), 2, 3))
            self.springs = server.scene.add_line_segments(
                "/springs", points, SPRING, thickness=3.0, thickness_units="screen"
            )
        self.forces = None
        if scene.force_length:
            self.forces = self._add_forces(np.zeros((1, 2, 3)), np.full((1, 2, 3), TOUCHING, np.uint8))
        self._camera()

    def _camera(self) -> None:
        """A view from the front right, a little above, that holds the whole mechanism."""
        self.server.initial_camera.position, self.server.initial_camera.look_at = self._view(1.05)

    def step_back(self, client: viser.ClientHandle) -> None:
        """The same from farther away, for an upright screen."""
        client.camera.position, client.camera.look_at = self._view(2.1)

    def _view(self, away: float) -> tuple[np.ndarray, np.ndarray]:
        """Position and target of a camera; away: in extents of the scene."""
        points = np.array([body.pose.position for body in self.scene.bodies])
        middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
        return middle + away * self.scene.extent * np.array([0.85, -1.0, 0.55]), middle

    def _add(self, name: str, shape: Shape, color: tuple[int, int, int] | None = None, opacity: float = 1.0) -> None:
        own = None if shape.color is None else tuple(round(255 * part) for part in shape.color[:3])
        position, wxyz = shape.pose
        look: dict[str, Any] = {
            "color": color or own or ROLE_COLORS[shape.role],
            "opacity": None if opacity == 1.0 else opacity,
            "position": position,
            "wxyz": wxyz,
            "cast_shadow": opacity == 1.0 and shape.role != "inertia",
        }
        add, size = self.server.scene, shape.size
        if shape.role == "inertia":
            handle = add.add_box(name, dimensions=size, **(look | {"opacity": 0.4, "visible": False}))
            self.inertias.append(handle)
        elif shape.kind == "box":
            add.add_box(name, dimensions=size, **look)
        elif shape.kind == "cylinder":
            add.add_cylinder(name, radius=0.5 * size[0], height=size[2], **look)
        elif shape.kind == "ellipsoid":
            add.add_icosphere(name, radius=0.5, scale=size, **look)
        else:
            self._add_mesh(name, shape, look, ghost=color is not None, painted=own is not None)

    def _add_mesh(self, name: str, shape: Shape, look: dict[str, Any], ghost: bool, painted: bool) -> None:
        """A mesh in its own colours, unless the robot file or the ghost gives one."""
        mesh = self._mesh(shape.file)
        if mesh is None:
            return
        single = mesh.to_mesh() if hasattr(mesh, "to_mesh") else mesh
        if ghost or painted or Path(shape.file).suffix.lower() == ".stl":
            self.server.scene.add_mesh_simple(name, single.vertices, single.faces, scale=shape.size, **look)
            return
        data = mesh.export(file_type="glb")
        position, wxyz = shape.pose
        self.server.scene.add_glb(name, data, scale=shape.size, position=position, wxyz=wxyz)

    def _mesh(self, file: str) -> Any:
        """None for a mesh that cannot be read: its body is not shown."""
        if file not in self.meshes:
            import trimesh

            try:
                check_file(file)
                self.meshes[file] = trimesh.load(file)
            except Exception:  # a reader of meshes raises anything
                self.meshes[file] = None
        return self.meshes[file]

    def show(self, positions: np.ndarray, quaternions: np.ndarray) -> None:
        """(n, 3) and (n, 4) of the moving bodies."""
        for frame, position, wxyz in zip(self.bodies[1:], positions, quaternions, strict=True):
            frame.position, frame.wxyz = position, wxyz
        if self.springs is not None:
            ends = [[self._point(spring.start), self._point(spring.end)] for spring in self.scene.springs]
            self.springs.points = np.array(ends)

    def show_forces(self, arrows: Sequence[ForceArrow]) -> None:
        """The forces of contacts."""
        if self.forces is None:
            return
        n = max(len(arrows), len(self.forces.points))  # those that are too many have no length
        ends, colors = np.zeros((n, 2, 3)), np.full((n, 2, 3), TOUCHING, np.uint8)
        for k, arrow in enumerate(arrows):
            ends[k], colors[k] = (arrow.point, arrow.point + arrow.vector), arrow.color
        if n > len(self.forces.points):
            self.forces = self._add_forces(ends, colors)
        else:
            self.forces.points, self.forces.colors = ends, colors

    def _add_forces(self, ends: np.ndarray, colors: np.ndarray) -> Any:
        return self.server.scene.add_line_segments("/contacts", ends, colors, thickness=5.0, thickness_units="screen")

    def _point(self, end: tuple[int, tuple[float, float, float]]) -> np.ndarray:
        import viser.transforms as tf

        body, point = end
        frame = self.bodies[body]
        return tf.SO3(np.asarray(frame.wxyz)).apply(np.array(point)) + np.asarray(frame.position)

    def _add_ghosts(self) -> None:
        ghosts = [self.server.scene.add_frame(f"/ghost/{k}", show_axes=False) for k in range(len(self.scene.bodies))]
        for k, body in enumerate(self.scene.bodies):
            ghosts[k].position, ghosts[k].wxyz = body.pose
            for i, shape in enumerate(body.shapes):
                if shape.role != "inertia" and k:
                    self._add(f"/ghost/{k}/{i}", shape, GHOST, 0.22)
        self.ghosts = ghosts

    def show_reference(self, positions: np.ndarray, quaternions: np.ndarray) -> None:
        ghosts = self.ghosts[1:]  # none before they are shown first
        for frame, position, wxyz in zip(ghosts, positions, quaternions, strict=False):
            frame.position, frame.wxyz = position, wxyz

    def show_ghost(self, visible: bool) -> None:
        if visible and not self.ghosts:
            self._add_ghosts()
        for frame in self.ghosts:
            frame.visible = visible

    def show_inertias(self, visible: bool) -> None:
        for handle in self.inertias:
            handle.visible = visible

    def show_shadows(self, visible: bool) -> None:
        self.server.scene.configure_default_lights(cast_shadow=visible)

    def mark(self, limits: Collection[str], links: Mapping[str, str]) -> None:
        """limits: joints at a limit; links: joint -> the body on it."""
        marked = {links[joint] for joint in limits if joint in links}
        for name, mark in self.marks.items():
            if mark.visible != (name in marked):
                mark.visible = name in marked

    def paint(self, dark: bool) -> None:
        self.grid.cell_color = (58, 62, 70) if dark else (214, 218, 224)
        self.grid.section_color = (84, 90, 100) if dark else (170, 177, 186)


def _round(length: float) -> float:
    """The power of ten, or twice or five times it, below a length."""
    power = 10.0 ** np.floor(np.log10(length))
    return float(power * max(k for k in (1, 2, 5) if k * power <= length * (1 + 1e-9)))


class ViewPanel:
    """The switches of what the 3D view shows."""

    def __init__(
        self, server: viser.ViserServer, place: Any, dark: bool, paint: Callable[[bool], None], show: Callable[[], None]
    ) -> None:
        """paint: with dark colours or light ones; show: the parts of the 3D view that are chosen here."""
        with place:
            self.dark = server.gui.add_checkbox("dark", dark)
            self.ghost = server.gui.add_checkbox("reference as ghost", True)
            self.inertia = server.gui.add_checkbox("inertia boxes", False)
            self.shadows = server.gui.add_checkbox("shadows", False, hint="slow where no GPU draws the page")
        self.dark.on_update(lambda _: paint(self.dark.value))
        for box in (self.ghost, self.inertia, self.shadows):
            box.on_update(lambda _: show())
