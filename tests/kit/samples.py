"""The sample rigs of the repository."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from cosim import Rig, load_rig
from tests.kit.levels import chosen

FOLDER = Path(__file__).parents[2] / "rigs"

# large samples, and others that together have all kinds of their parts: tests that compile much leave them out
COVERED = {
    "drives/industrial_arm": {"ur5_sim", "bench/full_drive"},
    "elastic/two_link_arm": {"elastic/spacecraft", "bench/flexible_arm", "arm_sim"},
    "impedance/ur5_impedance": {"impedance/ur5_contact"},
    "mechanisms/suspension": {"mechanisms/four_bars", "mechanisms/parallelogram"},
    "prescribed_wrist": {"ur5_sim", "mechanisms/arm_on_moving_base"},
    "ur5_realtime": {"ur5_sim", "elastic/spacecraft"},
}


def without_drivers(pattern: str) -> list[Path]:
    """The rigs of the folder in which every motor is simulated, sorted; no more is read of them, and that by the parser
    that knows no line numbers: every worker does it before its first test."""
    return sorted(file for file in FOLDER.glob(pattern) if is_rig(file) and not _data(file).get("drivers"))


def is_rig(file: Path) -> bool:
    """Whether it is a whole one; others are overlays and layouts."""
    return bool({"mechanism", "parts"} & _data(file).keys())


@cache
def _data(file: Path) -> Any:
    return yaml.load(file.read_text(), yaml.CSafeLoader)


KINDS = {"type", "formulation", "integrator"}  # keys with a word that tells what a part is


def kinds_of(name: str) -> set[tuple[str, ...]]:
    """What tells a sample from another one: the places and words of KINDS, and the sections of its mechanism."""
    file = file_of(name)
    return set(_kinds(_data(file) if file.suffix == ".yaml" else {"mechanism": {file.suffix[1:]: ""}}, ()))


def size_of(name: str) -> int:
    """What a test of a sample costs, more or less: the length of its text."""
    return file_of(name).stat().st_size


def file_of(name: str) -> Path:
    """Of a rig, whose name has no suffix, or of a robot."""
    return FOLDER / (name if name.endswith(".urdf") else f"{name}.yaml")


def _kinds(data: Any, place: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(data, list):
        for item in data:
            yield from _kinds(item, place)
    elif isinstance(data, dict):
        for key, value in data.items():
            if key in KINDS and isinstance(value, str):
                yield (*place[:2], key, value)
            elif place == ("mechanism",):
                yield (*place, key)
            # whatever the joint is called
            yield from _kinds(value, place if place == ("joints",) else (*place, key))


def few_samples(names: Iterable[str], section: str = "") -> list[str]:
    """As few and as short of these sample rigs as have all kinds, or the kinds of a section of a rig."""

    def kinds(name: str) -> set[tuple[str, ...]]:
        return {kind for kind in kinds_of(name) if kind[0].startswith(section)}

    return chosen(names, kinds, size_of)


@pytest.fixture
def sample() -> Callable[..., Rig]:
    """A sample rig by its name, after overrides."""

    def load(name: str, *overrides: str, interpret: bool = False) -> Rig:
        return load_rig(FOLDER / f"{name}.yaml", overrides, interpret)

    return load
