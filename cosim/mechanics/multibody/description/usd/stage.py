"""A stage of USD: its units, poses of prims in SI, values of attributes, and names for prims."""

from __future__ import annotations

import importlib
import math
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from cosim.core.errors import InputError, InputErrors, SourceLocation
from cosim.core.paths import UNTRACKED, NotAFile, check_file
from cosim.core.trust.data_only import USD, refuse_code
from cosim.mechanics.multibody.coordinates import rotation_of
from cosim.mechanics.multibody.description.diagnostics import Diagnostics
from cosim.mechanics.multibody.mechanism import Pose

INSTALL = "pip install usd-core"
SHEAR = 1e-5  # cosine of two axes that count as orthogonal
DOUBLE = ("double", "double3", "point3d", "vector3d", "quatd")  # types of attributes
_LINE = re.compile(r":(\d+):\d+\(\d+\)|on line (\d+)")  # in a message of its parser
GRAVITY = 9.81  # m/s², where the file has none


@dataclass
class UsdStage:
    """An opened file, and the remarks on it so far."""

    usd: Any  # the package pxr, its modules as attributes
    stage: Any  # pxr.Usd.Stage
    file: str
    diagnostics: Diagnostics = field(default_factory=Diagnostics)

    @classmethod
    def of(cls, path: str | Path) -> UsdStage:
        """Raises InputErrors for a file that cannot be opened, and where the package is missing."""
        file = str(path)
        refuse_code(Path(file).name, USD, SourceLocation(file))
        usd = _import(file)
        sys.audit(UNTRACKED, file)
        try:
            check_file(file)
            if not Path(file).exists():
                raise InputErrors([InputError("no such file", SourceLocation(file))])
            with _quiet():
                stage = usd.Usd.Stage.Open(file)
        except NotAFile as error:
            raise InputErrors([InputError(f"cannot be read: {error.strerror}", SourceLocation(file))]) from None
        except usd.Tf.ErrorException as error:
            line = _LINE.search(str(error))
            what = "USD cannot read the file; check its syntax with usdchecker"
            raise InputErrors(
                [InputError(what, SourceLocation(file, int(line[1] or line[2]) if line else None))]
            ) from None
        broken = [str(error) for error in stage.GetCompositionErrors()]
        if broken:
            what = f"USD cannot compose the file: {broken[0]}"
            raise InputErrors([InputError(what, SourceLocation(file))])
        return cls(usd, stage, file)

    def place(self, prim: Any) -> SourceLocation:
        return SourceLocation(self.file, key=str(prim.GetPath()))

    def error(self, prim: Any, what: str) -> None:
        self.diagnostics.error(what, self.place(prim))

    def warn(self, prim: Any, what: str) -> None:
        self.diagnostics.warn(what, self.place(prim))

    @property
    def title(self) -> str:
        prim = self.stage.GetDefaultPrim()
        return prim.GetName() if prim else Path(self.file).stem

    @cached_property
    def prims(self) -> list[Any]:
        """All that are active and defined, in the order of the file."""
        return list(self.usd.Usd.PrimRange.Stage(self.stage, self.usd.Usd.TraverseInstanceProxies()))

    def named(self, prims: list[Any]) -> dict[str, str]:
        """Path of each prim -> the shortest end of the path that no other one has."""
        paths = [str(prim.GetPath()).strip("/").split("/") for prim in prims]
        ends = Counter(tuple(path[-count:]) for path in paths for count in range(1, len(path) + 1))
        found = {}
        for path in paths:
            unique = (path[-count:] for count in range(1, len(path) + 1) if ends[tuple(path[-count:])] == 1)
            found["/" + "/".join(path)] = "/".join(next(unique, path))
        return found

    # --- units ---

    @cached_property
    def metre(self) -> float:
        """m per unit of length"""
        return float(self.usd.UsdGeom.GetStageMetersPerUnit(self.stage))

    @cached_property
    def kilogram(self) -> float:
        """kg per unit of mass"""
        return float(self.usd.UsdPhysics.GetStageKilogramsPerUnit(self.stage))

    @cached_property
    def up(self) -> np.ndarray:
        return np.eye(3)[{"X": 0, "Y": 1, "Z": 2}[str(self.usd.UsdGeom.GetStageUpAxis(self.stage))]]

    def gravity(self) -> tuple[float, float, float]:
        """[m/s²], of the first physics scene; without one along the axis that is down."""
        direction, magnitude = -self.up, GRAVITY
        scenes = [prim for prim in self.prims if prim.IsA(self.usd.UsdPhysics.Scene)]
        if scenes:
            given = self.vector(scenes[0], "physics:gravityDirection", (0.0, 0.0, 0.0))
            if given.any():
                direction = given / np.linalg.norm(given)
            size = self.number(scenes[0], "physics:gravityMagnitude", -math.inf)
            magnitude = size * self.metre if size >= 0.0 and math.isfinite(size) else GRAVITY
        x, y, z = (magnitude * direction).tolist()
        return x, y, z

    # --- attributes ---

    def value(self, prim: Any, name: str) -> Any:
        """None where it is not there."""
        attribute = prim.GetAttribute(name)
        return attribute.Get() if attribute else None

    def number(self, prim: Any, name: str, default: float) -> float:
        value = self.value(prim, name)
        return default if value is None else self._written(prim, name, value)

    def vector(self, prim: Any, name: str, default: tuple[float, ...]) -> np.ndarray:
        value = self.value(prim, name)
        return np.array(default if value is None else [self._written(prim, name, x) for x in value], dtype=float)

    def _written(self, prim: Any, name: str, value: float) -> float:
        """The decimal number that was written into a number of single precision, such as 9.81."""
        is_double = str(prim.GetAttribute(name).GetTypeName()) in DOUBLE
        return float(value) if is_double else float(str(np.float32(value)))

    def turn(self, prim: Any, name: str) -> np.ndarray:
        """The rotation (3, 3) of a quaternion, the identity for one that is missing or zero."""
        value = self.value(prim, name)
        if value is None:
            return np.eye(3)
        parts = (*value.GetImaginary(), value.GetReal())
        found = np.array([self._written(prim, name, x) for x in parts])
        return np.array(rotation_of(found)) if found.any() else np.eye(3)

    def target(self, prim: Any, name: str) -> Any | None:
        """The prim that a relation names first."""
        relation = prim.GetRelationship(name)
        targets = relation.GetForwardedTargets() if relation else []
        return self.stage.GetPrimAtPath(targets[0]) if targets else None

    # --- poses ---

    @cached_property
    def _poses(self) -> Any:
        return self.usd.UsdGeom.XformCache()

    def matrix(self, prim: Any) -> np.ndarray:
        """(4, 4): from its own coordinates to those of the world, in units of the stage."""
        if not prim or str(prim.GetPath()) == "/":
            return np.eye(4)
        return np.array(self._poses.GetLocalToWorldTransform(prim), dtype=float).T

    def pose(self, prim: Any) -> tuple[Pose, np.ndarray]:
        """(its frame in the world, its scale along its axes (3,)); an error for a shear or a mirror image."""
        return self.split(self.matrix(prim), prim)

    def split(self, matrix: np.ndarray, prim: Any) -> tuple[Pose, np.ndarray]:
        """(pose, scale) of a matrix (4, 4)."""
        scale = np.linalg.norm(matrix[:3, :3], axis=0)
        axes = matrix[:3, :3] / np.where(scale > 0.0, scale, 1.0)
        sheared = np.abs(axes.T @ axes - np.eye(3)).max() > SHEAR
        if not scale.all() or sheared or np.linalg.det(axes) < 0.0:
            self.error(prim, "its transform is a shear, a mirror image or flat; apply it to the points")
            return Pose.identity(), np.ones(3)
        left, _, right = np.linalg.svd(axes)
        turn = left @ right
        turn = np.where(np.abs(turn - np.round(turn)) < 1e-15, np.round(turn), turn) + 0.0
        return Pose(turn, matrix[:3, 3] * self.metre), scale


@contextmanager
def _quiet() -> Iterator[None]:
    """USD prints to the terminal what it raises too."""
    saved = os.dup(2)
    null = os.open(os.devnull, os.O_WRONLY)
    sys.stderr.flush()
    os.dup2(null, 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(null)


class _Package:
    """The modules of the package by name."""

    def __getattr__(self, name: str) -> Any:
        return importlib.import_module(f"pxr.{name}")


def _import(file: str) -> Any:
    try:
        importlib.import_module("pxr.UsdPhysics")
    except ImportError:
        what = f"USD needs the package usd-core, which is not installed; {INSTALL}"
        raise InputErrors([InputError(what, SourceLocation(file))]) from None
    return _Package()
