"""The frames of SDF: a scope for every model, with the poses of its links, joints, frames and nested models.

Semantics: "Specifying pose" of SDFormat, http://sdformat.org/tutorials?tut=pose_frame_semantics. Every model has a
frame `__model__`, attached to its canonical link. Links, nested models and frames are placed in it unless they name
another frame, joints in the frame of their child. A model that is included with `merge` shares the names of the model
around it, and has another frame in place of `__model__`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cosim.core.errors import InputError, InputErrors, did_you_mean
from cosim.mechanics.multibody.description.sdf.files import SdfFiles
from cosim.mechanics.multibody.description.sdf.values import SCOPE, SdfValues, children
from cosim.mechanics.multibody.description.xmltree import XmlElement
from cosim.mechanics.multibody.mechanism import GROUND_LINK, Pose

MODEL_FRAME, WORLD_FRAME = "__model__", "world"
MOST_NESTED = 20  # models in one another
OF_JOINT = " (joint)"  # after the name of a joint in a file of version 1.6 that is also the name of a link


@dataclass
class SdfFrame:
    """A frame of a scope: its pose in another one, and what it is attached to; "" of a link, which is a body."""

    element: XmlElement
    pose: Pose
    relative_to: str
    attached_to: str
    owner: Scope | None = None  # of a nested model: its scope
    is_link: bool = False


@dataclass
class SdfPart:
    """A link, a joint or a named frame: its name in the scope, and the frame in place of `__model__` there."""

    name: str
    element: XmlElement
    model_frame: str


@dataclass
class Scope:
    """A model or a world. prefix: before its names in the mechanism; in_root: its own frame there."""

    values: SdfValues
    files: SdfFiles
    prefix: str = ""
    in_root: Pose = field(default_factory=Pose.identity)
    origin: str = MODEL_FRAME
    depth: int = 0
    frames: dict[str, SdfFrame] = field(default_factory=dict)
    links: list[SdfPart] = field(default_factory=list)
    joints: list[SdfPart] = field(default_factory=list)
    named: list[SdfPart] = field(default_factory=list)  # explicit frames
    nested: dict[str, Scope] = field(default_factory=dict)
    models: list[XmlElement] = field(default_factory=list)  # whose content is in this scope
    canonical: str = ""
    static: bool = False

    # --- reading ---

    def add_content(self, model: XmlElement, model_frame: str) -> None:
        """The links, joints, frames and models in a model."""
        self.models.append(model)
        self.values.warn_of_misspellings(model)
        for element in model.children:
            if element.tag in ("link", "joint", "frame"):
                self._add_part(element, model_frame)
            elif element.tag == "model":
                self.add_model(element, model_frame)
            elif element.tag == "include":
                self.add_include(element, model_frame)

    def _add_part(self, element: XmlElement, model_frame: str) -> None:
        values, name = self.values, self.values.name(element)
        pose, relative_to = values.pose(element)
        part = SdfPart(name, element, model_frame)
        if element.tag == "link":
            frame = SdfFrame(element, pose, relative_to or model_frame, "", is_link=True)
            self.links.append(part)
        elif element.tag == "joint":
            child = self.within(part, values.text(element, "child"))
            frame = SdfFrame(element, pose, relative_to or child, child)
            self.joints.append(part)
        else:
            attached = element.attributes.get("attached_to", "").strip() or model_frame
            frame = SdfFrame(element, pose, relative_to or attached, attached)
            self.named.append(part)
        frame.relative_to, frame.attached_to = (self.within(part, at) for at in (frame.relative_to, frame.attached_to))
        self._add_frame(part, frame)

    def _add_frame(self, part: SdfPart, frame: SdfFrame) -> None:
        if not part.name:
            return
        other = self.frames.get(part.name)
        if other is not None and other.is_link != frame.is_link and "joint" in (part.element.tag, other.element.tag):
            if frame.is_link:  # a joint and a link may have one name in version 1.6
                self.frames[part.name], self.frames[part.name + OF_JOINT] = frame, other
            else:
                self.frames[part.name + OF_JOINT] = frame
        elif other is not None:
            what = f"the name is that of a <{other.element.tag}> of line {other.element.line}; names must be unique"
            self.values.error(part.element, what)
        else:
            self.frames[part.name] = frame

    def frame_of(self, joint: SdfPart) -> str:
        """The name of the frame of a joint."""
        return joint.name + OF_JOINT if joint.name + OF_JOINT in self.frames else joint.name

    def add_model(
        self, model: XmlElement, model_frame: str, include: XmlElement | None = None
    ) -> tuple[str, Scope] | None:
        """A nested model: its name and its scope. include: the element that includes it, which may rename and place
        it."""
        values = self.values
        if self.depth >= MOST_NESTED:
            raise InputErrors(
                [InputError("models include one another without end; take one out", (include or model).place)]
            )
        if include is not None and values.text(include, "name", ""):
            renamed = XmlElement("include", {"name": values.text(include, "name")}, include.line, file=include.file)
            name = values.name(renamed)
        else:
            name = values.name(model)
        pose, relative_to = values.pose(model)
        placement = model.attributes.get("placement_frame", "").strip()
        if include is not None:
            if values.child(include, "pose") is not None:
                pose, relative_to = values.pose(include)
            placement = values.text(include, "placement_frame", "") or placement
        part = SdfPart(name, model, model_frame)
        relative_to = self.within(part, relative_to or model_frame)
        inner = Scope(values, self.files, f"{self.prefix}{name}{SCOPE}", depth=self.depth + 1)
        inner.canonical = model.attributes.get("canonical_link", "").strip()
        inner.static = values.flag(model, "static")
        if include is not None:
            inner.static = values.flag(include, "static", inner.static)
        inner.add_content(model, MODEL_FRAME)
        if placement:
            pose = pose @ inner.place(placement, model).inverse()
        self._add_frame(part, SdfFrame(include or model, pose, relative_to, name, inner))
        self.nested[name] = inner
        return name, inner

    def add_include(self, include: XmlElement, model_frame: str) -> None:
        """An included model, nested or merged into this one."""
        model = self.files.included(include)
        if model is None:
            return
        merge = include.attributes.get("merge", "false")
        if self.values.truth(include, merge):
            self._merge(include, model, model_frame)
        else:
            self.add_model(model, model_frame, include)

    def _merge(self, include: XmlElement, model: XmlElement, model_frame: str) -> None:
        values = self.values
        name = values.text(include, "name", "") or model.attributes.get("name", "")
        proxy = f"_merged__{name}{MODEL_FRAME}"
        if self.depth >= MOST_NESTED or len(self.models) > MOST_NESTED * MOST_NESTED:
            raise InputErrors([InputError("models include one another without end; take one out", include.place)])
        pose, relative_to = values.pose(include if values.child(include, "pose") is not None else model)
        placement = values.text(include, "placement_frame", "") or model.attributes.get("placement_frame", "").strip()
        canonical = model.attributes.get("canonical_link", "").strip()
        first = next((link.attributes.get("name", "") for link in children(model, "link")), "")
        frame = SdfFrame(
            include,
            pose,
            self.within(SdfPart(name, model, model_frame), relative_to or model_frame),
            canonical or first,
        )
        self._add_frame(SdfPart(proxy, include, model_frame), frame)
        self.depth += 1
        self.add_content(model, proxy)
        self.depth -= 1
        if placement:
            frame.pose = pose @ self.place(placement, include, proxy).inverse()

    @staticmethod
    def within(part: SdfPart, name: str) -> str:
        """A name in the content of a model, which may be merged into another one."""
        return part.model_frame if name == MODEL_FRAME else name

    # --- frames ---

    def place(self, name: str, user: XmlElement, until: str = "") -> Pose:
        """The pose of a frame in the frame of the model, or in `until` of which it depends. user: the element that
        names it."""
        path, pose = self._path(name, user, until or self.origin), Pose.identity()
        for _, step in reversed(path):
            pose = pose @ step
        return pose

    def relative(self, base: str, name: str, user: XmlElement) -> Pose:
        """The pose of one frame in another; `world` is the root."""
        if GROUND_LINK in (base, name):
            below, above = (self._in_root(each, user) for each in (base, name))
            return below.inverse() @ above
        to_base, to_name = (self._path(each, user, self.origin) for each in (base, name))
        while to_base and to_name and to_base[-1][0] == to_name[-1][0]:
            to_base.pop()
            to_name.pop()
        below, above = Pose.identity(), Pose.identity()
        for _, step in reversed(to_base):
            below = below @ step
        for _, step in reversed(to_name):
            above = above @ step
        return below.inverse() @ above if to_base else above

    def _in_root(self, name: str, user: XmlElement) -> Pose:
        return Pose.identity() if name == GROUND_LINK else self.in_root @ self.place(name, user)

    def _path(self, name: str, user: XmlElement, until: str) -> list[tuple[str, Pose]]:
        """(frame, its pose in the next one) up to the frame of the model; an error ends it there."""
        path: list[tuple[str, Pose]] = []
        seen = set()
        while name not in (until, self.origin):
            if name in seen:
                what = f"the pose of '{name}' depends on itself; place it relative to another frame"
                self.values.error(self.frames[name].element, what)
                return []
            seen.add(name)
            inside, inner = self._split(name)
            if inner is not None:
                path.append((name, inner.place(inside, user)))
                name = name.removesuffix(SCOPE + inside)
                continue
            frame = self.frames.get(name)
            if frame is None:
                self._unknown(name, user)
                return path
            path.append((name, frame.pose))
            name = frame.relative_to
        return path

    def _split(self, name: str) -> tuple[str, Scope | None]:
        """(the name inside of a nested model, the scope of that model)."""
        head, sep, inside = name.partition(SCOPE)
        return (inside, self.nested[head]) if sep and name not in self.frames and head in self.nested else (name, None)

    def _unknown(self, name: str, user: XmlElement) -> None:
        if name and not self.files.incomplete:
            self.values.error(user, f"there is no frame '{name}'{did_you_mean(name, self._all_names())}")

    def _all_names(self) -> list[str]:
        inner = [f"{name}{SCOPE}{inside}" for name, scope in self.nested.items() for inside in scope.frames]
        return [*self.frames, *inner]

    def body(self, name: str, user: XmlElement) -> str:
        """The link that a frame is attached to, by its name in this scope; `world` is the ground; "" after an error."""
        seen = set()
        while True:
            if name == GROUND_LINK:
                return GROUND_LINK
            if name in seen:
                self.values.error(user, f"frame '{name}' is attached to itself; attach it to a link")
                return ""
            seen.add(name)
            inside, inner = self._split(name)
            if inner is not None:
                head = name.removesuffix(SCOPE + inside)
                found = inner.body(inside, user)
                return f"{head}{SCOPE}{found}" if found and found != GROUND_LINK else found
            if name == MODEL_FRAME:
                name = self.canonical or self.first_link()
                if not name:
                    self.values.error(user, "the model has no link to be attached to; add one")
                    return ""
                continue
            frame = self.frames.get(name)
            if frame is None:
                self._unknown(name, user)
                return ""
            if frame.is_link:
                return name
            name = f"{name}{SCOPE}{MODEL_FRAME}" if frame.owner is not None else frame.attached_to

    def flat(self, name: str) -> str:
        """The name in the mechanism of a link of this scope, "" for "", the ground for one that does not move."""
        inside, inner = self._split(name)
        if inner is not None:
            return inner.flat(inside)
        fixed = name == GROUND_LINK or (self.static and name)
        return GROUND_LINK if fixed else name and self.prefix + name

    def first_link(self) -> str:
        """The canonical link unless the model names one: its own first, else the first of its models."""
        if self.links:
            return self.links[0].name
        found = ((name, scope.canonical or scope.first_link()) for name, scope in self.nested.items())
        return next((f"{name}{SCOPE}{link}" for name, link in found if link), "")

    def settle(self, in_root: Pose) -> None:
        """Give this scope and those in it their poses in the root."""
        self.in_root = in_root
        for name, scope in self.nested.items():
            if name in self.frames:
                scope.settle(in_root @ self.place(name, self.frames[name].element))

    def all_links(self) -> list[SdfPart]:
        """Those of this scope and of all in it."""
        return [part for scope in self.all_scopes() for part in scope.links]

    def all_scopes(self) -> list[Scope]:
        found: list[Scope] = [self]
        for scope in self.nested.values():
            found += scope.all_scopes()
        return found
