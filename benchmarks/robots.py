"""Robots and random states that several rows share: built once, with fixed seeds."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.paired_timing import RepeatedCall
from benchmarks.peers import robot_file
from cosim.core.errors import InputError
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.description.urdf import parse_urdf

UR5 = "ur_description/urdf/ur5_robot.urdf"
PANDA = "panda_description/urdf/panda.urdf"
TALOS = "talos_data/robots/talos_reduced.urdf"

CHECKOUT = Path(__file__).parents[1]
SAMPLE_RIG = "rigs/ur5_sim.yaml"


@dataclass(frozen=True)
class Robot:
    """A robot of example-robot-data as text and as a model."""

    text: str
    model: Model


@cache
def load_robot(name: str, mimics: bool = True) -> Robot:
    """mimics=False: without its <mimic> elements, so that all joints are independent. Raises MissingPeer."""
    text = robot_file(name).read_text()
    if not mimics:
        tree = ET.fromstring(text)
        for joint in tree.findall("joint"):
            for mimic in joint.findall("mimic"):
                joint.remove(mimic)
        text = ET.tostring(tree, encoding="unicode")
    return Robot(text, Model(parse_urdf(text)))


def random_state(model: Model, rows: tuple[int, ...] = ()) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(q, v, τ) of shape (*rows, nv) each: positions and velocities within ±1, efforts within ±10."""
    uniform, shape = np.random.default_rng(0).uniform, (*rows, model.nv)
    return uniform(-1, 1, shape), uniform(-1, 1, shape), uniform(-10, 10, shape)


def sample_rig() -> Path:
    """The file of the sample rig. Raises InputError."""
    return rig_path(SAMPLE_RIG)


def rig_path(name: str) -> Path:
    """A rig file, in the working directory or else in the checkout of this package. Raises InputError."""
    for folder in (Path.cwd(), CHECKOUT):
        if (folder / name).is_file():
            return folder / name
    raise InputError("not found; run `python -m benchmarks` in a checkout of the project", name)


def repeated_call(f: Callable[..., object], a: Any, b: Any, c: Any, out: Any = None) -> RepeatedCall:
    """n calls of f(a, b, c), as one writes it by hand; with `out`, of f(a, b, c, out=out)."""

    def natural(n: int) -> None:
        call = f
        for _ in range(n):
            call(a, b, c)

    def block(n: int) -> None:
        call = f
        for _ in range(n):
            call(a, b, c, out=out)

    return natural if out is None else block
