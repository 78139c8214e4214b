"""The scene of a rig, for programs that draw it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cosim.core.compile import ArrayPort, BatchFunction, compile_for_batches
from cosim.core.compile.portable import PortableFunction
from cosim.core.errors import CompileError, CosimError
from cosim.mechanics.multibody.model import Model
from cosim.mechanics.multibody.part_names import shown_name
from cosim.output.scene.build import scene_of
from cosim.output.scene.scene import Scene
from cosim.output.scene.sdf_visuals import read_sdf_visuals
from cosim.output.scene.visuals import Visual, read_visuals
from cosim.output.view3d.drawing import Drawing, write_drawing
from cosim.output.view3d.view import View, fixed_links, mounts_of
from cosim.rig.sections.mechanism import packages_of, xacro_arguments_of
from cosim.rig.wiring.wired_rig import WiredRig

NO_MESHES = "links with a mesh are shown as bars, without the files of their meshes"


def scene_of_rig(rig: WiredRig) -> Scene:
    """At the rig's initial positions. Kept with the other parts of the rig for other processes."""
    scene = rig.cached.get("scene", lambda: _scene(rig, *_visuals(rig)))
    rig.cached.save()
    return scene


def scene_of_page(rig: WiredRig) -> Scene:
    """As `scene_of_rig`, without files of meshes: a link that is shown by one is a bar between its joints."""
    visuals, notes = _visuals(rig)
    solid = {link: () if any(visual.kind == "mesh" for visual in own) else own for link, own in visuals.items()}
    return _scene(rig, solid, notes if solid == visuals else [*notes, NO_MESHES])


def drawing_of(rig: WiredRig) -> Drawing:
    """The mechanism with the files of its meshes, for programs on this machine."""
    scene = scene_of_rig(rig)
    return rig.cached.get("drawing", lambda: _drawing(rig.plant.model.drawn, scene))


def drawing_text_of(rig: WiredRig) -> str:
    """The mechanism as text that other programs draw without a file and without code of the rig; without meshes, as
    `scene_of_page`. Empty for a rig without joints."""
    if not rig.joints:
        return ""
    text = rig.cached.get("drawing text", lambda: write_drawing(*_portable(rig)))
    rig.cached.save()
    return text


def _portable(rig: WiredRig) -> tuple[Drawing, PortableFunction | None]:
    scene, model = scene_of_page(rig), rig.plant.model.drawn
    shapes = [(model.nq,), *([()] if scene.timed else [])]
    try:
        poses = PortableFunction.of(model.equations.body_poses, shapes, "body_poses")
    except CompileError:  # a motion that is given by a table
        poses = None
    return _drawing(model, scene), poses


def view_of(rig: WiredRig, signals: Sequence[str], rate: float | None) -> View | None:
    """What the mechanism in 3D is made of, from these signals; None without a rate or a mechanism, and where positions
    are not among them."""
    if rate is None or not rig.joints:
        return None
    return drawing_of(rig).view(rig.joints, signals, rate)


def _drawing(model: Model, scene: Scene) -> Drawing:
    mounts = mounts_of(model)
    placed = np.array([np.column_stack([mount.rotation, mount.position]) for mount in mounts[1:]]).reshape(-1, 3, 4)
    carried = {joint.name: shown_name(joint.child) for joint in model.joints}
    return Drawing(scene, _batch_poses(model), placed, fixed_links(model, scene, mounts), carried)


def _batch_poses(model: Model) -> BatchFunction:
    ports = [ArrayPort("q", (model.nq,)), *([ArrayPort("t", ())] if model.equations.timed else [])]
    poses = compile_for_batches(model.equations.body_poses, ports, "body_poses", interpret=False)
    assert isinstance(poses, BatchFunction)
    return poses


def _scene(rig: WiredRig, visuals: Mapping[str, Sequence[Visual]], notes: Sequence[str]) -> Scene:
    plant = rig.plant
    actuated = {name.partition(".")[0] for name in (*plant.actuated, *plant.real)}
    return scene_of(plant.model, plant.start.q, actuated, visuals, notes)


def _visuals(rig: WiredRig) -> tuple[dict[str, list[Visual]], list[str]]:
    """The visuals of a URDF or SDF file; those of MJCF and USD are not read."""
    file, section = rig.spec.mechanism.urdf, rig.spec.source.data.get("mechanism", {})
    if file is None or any(section.get(key) is not None for key in ("mjcf", "usd")):
        return {}, []
    packages = packages_of(section, rig.spec.path.parent)
    try:
        if section.get("sdf") is not None:
            return read_sdf_visuals(file, section.get("model"), packages)
        return read_visuals(file, xacro_arguments_of(section), packages)
    except CosimError as error:  # the mechanism was read; a file that changed since is still shown as shapes
        return {}, [str(error)]
