"""The scene of a rig, for programs that draw it."""

from __future__ import annotations

from cosim.errors import CosimError
from cosim.output.scene.build import scene_of
from cosim.output.scene.scene import Scene
from cosim.output.scene.visuals import Visual, read_visuals
from cosim.rig.build.wired_rig import WiredRig
from cosim.rig.sections.mechanism import packages_of, xacro_arguments_of


def scene_of_rig(rig: WiredRig) -> Scene:
    """At the rig's initial positions. Kept with the other parts of the rig for other processes."""
    scene = rig.cached.recall("scene", lambda: _scene(rig))
    rig.cached.save()
    return scene


def _scene(rig: WiredRig) -> Scene:
    plant = rig.plant
    actuated = {name.partition(".")[0] for name in (*plant.actuators, *plant.real)}
    visuals, notes = _visuals(rig)
    return scene_of(plant.model, plant.start.q, actuated, visuals, notes)


def _visuals(rig: WiredRig) -> tuple[dict[str, list[Visual]], list[str]]:
    """Those of a URDF; a robot file of another format has none that are read."""
    file, section = rig.spec.mechanism.urdf, rig.spec.source.data["mechanism"]
    if file is None or section.get("urdf") is None:
        return {}, []
    arguments, packages = xacro_arguments_of(section), packages_of(section, rig.spec.path.parent)
    try:
        return read_visuals(file, arguments, packages)
    except CosimError as error:  # the mechanism was read; a file that changed since is still shown as shapes
        return {}, [str(error)]
