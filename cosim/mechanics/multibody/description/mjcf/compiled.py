"""A compiled model of MuJoCo: names, flags, frames and counts by words, whatever the version of the package."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from cosim.core.errors import InputError, InputErrors, SourceLocation
from cosim.core.paths import UNTRACKED, NotAFile, check_file
from cosim.core.trust.data_only import MJCF, refuse_code
from cosim.mechanics.multibody.description.diagnostics import Diagnostics
from cosim.mechanics.multibody.description.mjcf.source import MjcfSource
from cosim.mechanics.multibody.mechanism import Pose

INSTALL = "pip install mujoco"
KINDS = ("free", "spherical", "prismatic", "revolute")  # by MuJoCo's number of the joint type
# flag of this program -> those of MuJoCo, of which older versions have one for springs and dampers
_FLAGS = {"SPRING": ("SPRING", "PASSIVE"), "DAMPER": ("DAMPER", "PASSIVE")}
_LINE = re.compile(r"line (?:number=)?(\d+)", re.I)
_FILE = re.compile(r"Error opening file '([^']+)'")
FINITE = {  # array of the model -> the object that has its rows; limits may be infinite
    **dict.fromkeys(("body_mass", "body_inertia", "body_ipos", "body_iquat", "body_pos", "body_quat"), "body"),
    **dict.fromkeys(("jnt_pos", "jnt_axis", "jnt_stiffness"), "joint"),
}


@dataclass
class CompiledModel:
    """The model of a file, and the remarks on it so far."""

    mujoco: ModuleType
    model: Any  # mujoco.MjModel
    file: str
    diagnostics: Diagnostics = field(default_factory=Diagnostics)
    taken: set[str] = field(default_factory=set)  # names of what is not a link

    def __post_init__(self) -> None:
        self.taken.update(self.joint(number) for number in range(self.model.njnt))

    @classmethod
    def of(cls, path: str | Path) -> CompiledModel:
        """Raises InputErrors for a file that MuJoCo refuses, and where the package `mujoco` is missing."""
        file = str(path)
        refuse_code(Path(file).name, MJCF, SourceLocation(file))
        mujoco = _import(file)
        sys.audit(UNTRACKED, file)
        try:
            check_file(file)
            with _warnings(mujoco) as warned:
                found = cls(mujoco, mujoco.MjModel.from_xml_path(file), file)
            for line in warned:
                found.diagnostics.note(f"MuJoCo: {line}", SourceLocation(file))
            return found
        except NotAFile as error:
            raise InputErrors([InputError(f"cannot be read: {error.strerror}", SourceLocation(file))]) from None
        except ValueError as error:
            text = " ".join(str(error).removeprefix("XML Error: ").removeprefix("Error: ").split())
            line = _LINE.search(text)
            place = SourceLocation(file, max(int(line[1]), 1)) if line else _place_of_file(file, text)
            raise InputErrors([InputError(f"MuJoCo cannot compile the file: {text}", place)]) from None

    def refuse_not_finite(self) -> None:
        """Raises InputErrors for numbers that MuJoCo takes and that are none."""
        errors = []
        for array, kind in FINITE.items():
            rows = np.asarray(getattr(self.model, array))
            for number in np.unique(np.argwhere(~np.isfinite(rows))[:, 0]).tolist():
                place = self.place(kind, self.name(kind.upper(), number))
                errors.append(InputError(f"{array.partition('_')[2]} is not finite; give a number", place))
        for number in np.flatnonzero(np.isnan(self.model.jnt_range).any(axis=1)).tolist():
            errors.append(InputError("range is no number; give two", self.place("joint", self.joint(number))))
        if errors:
            raise InputErrors(errors)

    @property
    def title(self) -> str:
        """The name of the model, or of its file."""
        names = self.model.names
        return names[: names.index(b"\0")].decode() or Path(self.file).stem

    def name(self, kind: str, number: int) -> str:
        """The name of the body, joint, … with this number."""
        found = self.mujoco.mj_id2name(self.model, getattr(self.mujoco.mjtObj, f"mjOBJ_{kind}"), number)
        return found or f"{kind.lower()}_{number}"

    def own_name(self, wanted: str, word: str) -> str:
        """A name that no joint, loop, constraint, spring or force has; elements of other kinds may share theirs in the
        file."""
        name = wanted if wanted not in self.taken else f"{wanted}_{word}"
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    @cached_property
    def source(self) -> MjcfSource:
        return MjcfSource.of(self.file)

    def place(self, kind: str, name: str) -> SourceLocation:
        """The place of the element `name`; kind: what it is, in words."""
        return self.source.place(kind, name)

    def section(self, tag: str) -> SourceLocation:
        """The place of the section `<tag>`, which a file may not have."""
        return self.source.section(tag)

    def warn(self, what: str, kind: str = "", name: str = "") -> None:
        self.diagnostics.warn(what, self.place(kind, name) if kind else SourceLocation(self.file))

    def disables(self, flag: str) -> bool:
        """Whether a `<flag>` of the file takes this away."""
        bits = (getattr(self.mujoco.mjtDisableBit, f"mjDSBL_{name}", 0) for name in _FLAGS.get(flag, (flag,)))
        return any(self.model.opt.disableflags & int(bit) for bit in bits)

    def is_a(self, value: int, enum: str, *names: str) -> bool:
        """Whether a number of the model is one of these members of an enumeration, such as EQ_WELD of mjtEq."""
        members = getattr(self.mujoco, enum)
        return any(int(value) == int(getattr(members, f"mj{name}", -1)) for name in names)

    def array(self, name: str, number: int) -> np.ndarray:
        """Row `number` of an array of the model as a vector, of no length where this version does not have it."""
        rows = getattr(self.model, name, None)
        return np.zeros(0) if rows is None else np.atleast_1d(np.array(rows[number], dtype=float))

    def number(self, name: str, number: int) -> float:
        """Its first element, 0 where this version does not have it."""
        row = self.array(name, number)
        return float(row[0]) if row.size else 0.0

    def posed(self) -> Any:
        """MuJoCo's data of the file's own pose, with its contacts."""
        data = self.mujoco.MjData(self.model)
        with _warnings(self.mujoco):
            self.mujoco.mj_fwdPosition(self.model, data)
        return data

    # --- joints and sites ---

    def kind(self, joint: int) -> str:
        return KINDS[self.model.jnt_type[joint]]

    def is_single(self, joint: int) -> bool:
        """Whether a joint has one coordinate."""
        return self.kind(joint) in ("prismatic", "revolute")

    def joint(self, number: int) -> str:
        return self.name("JOINT", number)

    @cached_property
    def units(self) -> dict[str, str]:
        """Joint of one coordinate -> its unit."""
        single = (number for number in range(self.model.njnt) if self.is_single(number))
        return {self.joint(number): "m" if self.kind(number) == "prismatic" else "rad" for number in single}

    def reference(self, joint: int) -> float:
        """The position of a joint of one coordinate in the file's own pose."""
        return float(self.model.qpos0[self.model.jnt_qposadr[joint]])

    def site(self, number: int) -> tuple[str, Pose]:
        """(its body, its frame in the body)."""
        model = self.model
        pose = Pose(rotation_of(model.site_quat[number]), np.array(model.site_pos[number]))
        return self.name("BODY", model.site_bodyid[number]), pose


def _place_of_file(file: str, text: str) -> SourceLocation:
    """Where a file names another one that MuJoCo cannot open; else its first line."""
    missing = _FILE.search(text)
    elements = [element for _, element in MjcfSource.of(file).elements] if missing else []
    naming = [each for each in elements if missing and missing[1].endswith(each.attributes.get("file", "\0"))]
    return SourceLocation(naming[0].file, naming[0].line) if naming else SourceLocation(file, 1)


@contextmanager
def _warnings(mujoco: ModuleType) -> Iterator[list[str]]:
    """What MuJoCo warns of, which it would else print, and append to a file in the working directory."""
    warned: list[str] = []
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda text: warned.append(" ".join(str(text).split())))
    try:
        yield warned
    finally:
        mujoco.set_mju_user_warning(before)


def _import(file: str) -> ModuleType:
    try:
        return importlib.import_module("mujoco")
    except ImportError:
        what = f"MJCF needs the package mujoco, which is not installed; {INSTALL}"
        raise InputErrors([InputError(what, SourceLocation(file))]) from None


def rotation_of(quaternion: np.ndarray) -> np.ndarray:
    """(3, 3) of a unit quaternion w, x, y, z (4,)."""
    w, x, y, z = quaternion
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
