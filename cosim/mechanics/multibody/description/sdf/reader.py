"""What a rig takes over of an SDF file, and what of it is lost.

Format: SDFormat 1.4 to 1.12, http://sdformat.org/spec. No plugin is loaded. Visuals and sensors are not read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cosim.core.errors import InputError, InputErrors, SourceLocation, did_you_mean, listed, plural
from cosim.mechanics.multibody.coordinates import quaternion_of
from cosim.mechanics.multibody.description.diagnostics import NO_CONTACTS, Diagnostics
from cosim.mechanics.multibody.description.inertia import inertia_findings, merged_inertials
from cosim.mechanics.multibody.description.plausible_units import note_of_point_masses
from cosim.mechanics.multibody.description.robot_file import NamedState, RobotFile
from cosim.mechanics.multibody.description.sdf.collisions import collisions_of
from cosim.mechanics.multibody.description.sdf.couplings import couplings
from cosim.mechanics.multibody.description.sdf.files import SdfFiles
from cosim.mechanics.multibody.description.sdf.joints import SdfJoints
from cosim.mechanics.multibody.description.sdf.links import inertial_of, warn_of_link
from cosim.mechanics.multibody.description.sdf.scopes import WORLD_FRAME, Scope
from cosim.mechanics.multibody.description.sdf.values import SdfValues, children
from cosim.mechanics.multibody.description.spanning_tree import SpanningTree, spanning_tree
from cosim.mechanics.multibody.description.topology import build_mechanism
from cosim.mechanics.multibody.description.xmltree import XmlElement
from cosim.mechanics.multibody.mechanism import (
    GROUND_LINK,
    NOWHERE,
    Frame,
    Joint,
    Link,
    Pose,
)

GRAVITY_OF_WORLD = (0.0, 0.0, -9.8)  # m/s², of a world that gives none
# plugins that move nothing: they publish, watch, draw, or are what this program is itself
STILL = re.compile(r"publisher|sensor|broadcaster|user-?commands|physics|imu|camera|contact|logical|label|record", re.I)
OF_DRAKE = re.compile(r"drake:(joint|linear_bushing_rpy|linear_spring_damper|ball_constraint|tendon_constraint)")


def read_sdf(path: str | Path, model: str | None = None, packages: Sequence[Path] = ()) -> RobotFile:
    """What the SDF file at `path` states.

    model: its name, where the file has several that move; packages: folders that are models or packages, or contain
    some, searched first. Raises InputError (InputErrors for errors in the file).
    """
    return SdfReader(Path(path), packages).read(model)


class SdfReader:
    """The parts of an SDF file so far."""

    def __init__(self, path: Path, packages: Sequence[Path] = (), text: bytes | None = None) -> None:
        self.values = SdfValues(Diagnostics())
        self.files = SdfFiles(self.values, path, packages)
        self.root = self.files.load(path, text)
        self.world = Scope(self.values, self.files, origin=WORLD_FRAME)

    def read(self, model: str | None) -> RobotFile:
        values, place = self.values, self.root.place
        element, name, scopes = self._prepared(model)
        joints = SdfJoints(values)
        for scope in (self.world, *scopes):
            for part in scope.joints:
                joints.add(part, scope)
        links = self._links(scopes)
        values.diagnostics.raise_errors()
        taken = {each.name for each in (*links, *joints.links)} | {each.joint.name for each in joints.joints}
        taken |= {each.name for each in joints.gearboxes}

        def own_name(wanted: str) -> str:
            while wanted in taken:
                wanted += "_"
            taken.add(wanted)
            return wanted

        tree = spanning_tree([*links, *joints.links], joints.joints, joints.last, own_name)
        for name in tree.swapped:
            joint = next(each.joint for each in joints.joints if each.joint.name == name)
            dofs = f"'{name}.first' is about <axis2>, '{name}.second' about <axis>"
            what = f"the tree reaches its parent from its child: {dofs}"
            values.diagnostics.note(what, joint.place)
        of_tree, loops, constraints = couplings(tree.joints, tree.loops, joints)
        self._check_inertias(scopes, links, of_tree)
        self._warn_of_scene(element, scopes, tree)
        gravity, gravity_place = self._gravity(element)
        carried = {
            scope.flat(part.name): 1.0
            for scope in scopes
            for part in scope.links
            if not values.flag(part.element, "gravity", True)
        }
        mechanism = build_mechanism(
            name,
            [Link(GROUND_LINK, place=place), *links, *joints.links, *tree.links],
            of_tree,
            values.diagnostics,
            loops,
            constraints,
            frames=self._frames(scopes, taken),
        )
        start = self._start(tree, joints.start, scopes)
        collisions = collisions_of([*self._standing(), *scopes])
        return RobotFile(
            mechanism, gravity, start=start, carried=carried, gravity_place=gravity_place, collisions=collisions
        )

    def visuals(self, model: str | None) -> list[tuple[str, XmlElement, Pose]]:
        """(link, element <visual>, its pose in the link) of the model."""
        _, _, scopes = self._prepared(model)
        return [
            (scope.flat(part.name), visual, self.values.pose(visual)[0])
            for scope in scopes
            for part in scope.links
            for visual in children(part.element, "visual")
        ]

    # --- models ---

    def _prepared(self, model: str | None) -> tuple[XmlElement | None, str, list[Scope]]:
        """(the world, if there is one; the name of the model; its scope and those in it, with their poses)."""
        element = self._scene()
        name, robot = self._chosen(model)
        robot.prefix = ""
        for inside, scope in robot.nested.items():
            _prefix(scope, f"{inside}::")
        self.world.settle(Pose.identity())
        return element, name, robot.all_scopes()

    def _scene(self) -> XmlElement | None:
        """The world of the file, after its models were read; None of a file of models."""
        worlds = children(self.root, "world")
        if len(worlds) > 1:
            raise InputErrors([InputError(f"the file has {len(worlds)} worlds; keep one", worlds[1].place)])
        content = worlds[0] if worlds else self.root
        self.world.add_content(content, WORLD_FRAME)
        return worlds[0] if worlds else None

    def _chosen(self, model: str | None) -> tuple[str, Scope]:
        """The model that is read: the only one that moves, or the one with this name."""
        known = self.world.nested
        if model is not None and model not in known:
            what = f"there is no model '{model}'{did_you_mean(model, known)}"
            raise InputErrors([*self.values.diagnostics.errors, InputError(what, self.root.place)])
        able = {name: scope for name, scope in known.items() if not scope.static and scope.all_links()}
        found = {model: known[model]} if model is not None else able
        errors = [*self.values.diagnostics.errors]
        if len(found) > 1:
            names = listed([f"'{name}'" for name in found])
            errors.append(
                InputError(f"the file has the models {names}; name one with mechanism.model", self.root.place)
            )
        elif not found:
            what = (
                "nothing moves: every model is static; take <static> out"
                if known
                else "the file has no <model>; add one"
            )
            if known and not any(scope.static for scope in known.values()):
                what = "the model has no <link>; add one"
            errors.append(InputError(what, self.root.place))
        elif next(iter(found.values())).static:
            errors.append(
                InputError(f"the model '{model}' is static, nothing in it moves; take <static> out", self.root.place)
            )
        if len(found) != 1 or len(errors) > len(self.values.diagnostics.errors):
            raise InputErrors(errors)
        return next(iter(found.items()))

    def _links(self, scopes: Sequence[Scope]) -> list[Link]:
        found = []
        for scope in scopes:
            for part in scope.links:
                warn_of_link(part.element, self.values)
                inertial = inertial_of(part.element, self.values)
                found.append(Link(scope.flat(part.name), inertial, self.values.place(part.element)))
        return found

    def _check_inertias(self, scopes: Sequence[Scope], links: Sequence[Link], joints: Sequence[Joint]) -> None:
        self.values.diagnostics.notes += note_of_point_masses(links, joints)
        bodies = merged_inertials(links, joints)
        elements = {scope.flat(part.name): part.element for scope in scopes for part in scope.links}
        for link in links:
            if link.inertial is None:
                continue
            error, note = inertia_findings(link.inertial, bodies.get(link.name))
            if error:
                self.values.error(elements[link.name], error)
            if note:
                self.values.note(elements[link.name], note)

    def _frames(self, scopes: Sequence[Scope], taken: set[str]) -> list[Frame]:
        found = []
        for scope in scopes:
            for part in scope.named:
                body = scope.body(part.name, part.element)
                name = scope.prefix + part.name
                if body and name not in taken:
                    pose = scope.relative(body, part.name, part.element)
                    found.append(Frame(name, scope.flat(body), pose, self.values.place(part.element)))
        return found

    # --- the world ---

    def _standing(self) -> list[Scope]:
        """Of the models that stand."""
        return [inner for scope in self.world.nested.values() if scope.static for inner in scope.all_scopes()]

    def _gravity(self, world: XmlElement | None) -> tuple[tuple[float, float, float] | None, SourceLocation]:
        """([m/s²], where); of a world, in old files of its physics."""
        if world is None:
            return None, NOWHERE
        of_physics = (each for physics in children(world, "physics") for each in children(physics, "gravity"))
        element = self.values.child(world, "gravity") or next(of_physics, None)
        if element is None:
            return GRAVITY_OF_WORLD, self.values.place(world)
        x, y, z = self.values.numbers(element, element.text, 3) or GRAVITY_OF_WORLD
        return (x, y, z), self.values.place(element)

    def _start(self, tree: SpanningTree, given: dict[str, float], scopes: Sequence[Scope]) -> NamedState | None:
        positions: dict[str, tuple[float, ...]] = {name: (value,) for name, value in given.items()}
        poses = {
            scope.flat(part.name): scope.relative(GROUND_LINK, part.name, part.element)
            for scope in scopes
            for part in scope.links
        }
        for joint, link in tree.bases.items():
            pose = poses[link]
            if pose.position.any() or not np.array_equal(pose.rotation, np.eye(3)):
                turn = np.array(quaternion_of(pose.rotation), dtype=float)
                positions[joint] = (*pose.position.tolist(), *(turn / np.linalg.norm(turn)).tolist())
        return NamedState("start", positions, place=self.root.place) if positions else None

    def _warn_of_scene(self, world: XmlElement | None, scopes: Sequence[Scope], tree: SpanningTree) -> None:
        values = self.values
        models = [model for scope in scopes for model in scope.models]
        for model in models:
            if values.flag(model, "self_collide"):
                values.warn(model, f"{NO_CONTACTS}: links move through one another (self_collide)")
            for element in model.children:
                if OF_DRAKE.match(element.tag):
                    values.warn(element, f"<{element.tag}> is not taken; add it to the rig")
        self._warn_of_plugins([*models, *([] if world is None else [world])])
        windy = [model for model in models if values.flag(model, "enable_wind")]
        windy += [link for model in models for link in children(model, "link") if values.flag(link, "enable_wind")]
        if windy and world is not None and values.child(world, "wind") is not None:
            values.warn(windy[0], "the forces of the wind are not taken; use mechanism.forces")
        if world is not None and children(world, "state"):
            values.warn(
                children(world, "state")[0], "the <state> of the world is not taken; give joints.<joint>.initial"
            )
        standing = [name for name, scope in self.world.nested.items() if scope.static]
        if standing and tree.bases and any(children(link, "collision") for m in models for link in children(m, "link")):
            what = f"{NO_CONTACTS}: the robot falls through '{standing[0]}'; hold its base or add mechanism.contacts"
            values.warn(models[0], what)

    def _warn_of_plugins(self, elements: Sequence[XmlElement]) -> None:
        """Of plugins that may move joints."""
        found = {id(each): each for element in elements for each in element.walk() if each.tag == "plugin"}
        moving = [each for each in found.values() if not STILL.search(" ".join(each.attributes.values()))]
        if moving:
            named = (each.attributes.get("name") or each.attributes.get("filename", "") for each in moving)
            names = listed([f"'{name}'" for name in dict.fromkeys(named)])
            what = f"the {plural(len(moving), 'plugin')} {names} {'is' if len(moving) == 1 else 'are'} not loaded"
            self.values.warn(moving[0], f"{what}; give actuators and controllers in the rig")


def _prefix(scope: Scope, prefix: str) -> None:
    """Name what is in a scope, and in those in it."""
    scope.prefix = prefix
    for name, inner in scope.nested.items():
        _prefix(inner, f"{prefix}{name}::")
