"""Robot files of every format: finding the file, recognising its format, reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from cosim.core.errors import InputError, SourceLocation, did_you_mean, listed
from cosim.core.paths import LEVELS, MOST_ENTRIES, files_below, irregular
from cosim.mechanics.multibody.description.mjcf.reader import read_mjcf
from cosim.mechanics.multibody.description.robot_file import RobotFile
from cosim.mechanics.multibody.description.sdf.reader import read_sdf
from cosim.mechanics.multibody.description.urdf import read_text, read_urdf
from cosim.mechanics.multibody.description.usd.reader import read_usd
from cosim.mechanics.multibody.description.xmltree import parse_xml

OF_USD = (".usd", ".usda", ".usdc", ".usdz")
SUFFIXES = (".urdf", ".xacro", ".xml", ".mjcf", ".sdf", ".world", *OF_USD)
YAML = (".yaml", ".yml")
MOST_BYTES = 3_000_000  # bytes
# root element -> format, a key of the section `mechanism`
ROOTS = {"robot": "urdf", "mujoco": "mjcf", "sdf": "sdf"}
FORMATS = (*ROOTS.values(), "usd")


def check_robot_file(path: Path, shown: str = "") -> None:
    """Raises InputError for what is no robot file, without a place. shown: its name in messages."""
    named = f" '{shown}'" if shown else ""
    if path.is_dir():
        files, complete = files_below(path, SUFFIXES)
        none = "it holds no robot file; name another"
        if not complete:
            searched = f"{LEVELS} levels or {MOST_ENTRIES:,} entries"
            none = f"in its first {searched} is no robot file; name a file"
        fix = f"name a file in it: {listed(files)}" if files else none
        raise InputError(f"{named[1:]} is a folder; {fix}".lstrip())
    if not path.exists():
        near = sorted(file.name for file in path.parent.glob("*") if file.suffix in SUFFIXES)
        raise InputError(f"no such file{named}{did_you_mean(path.name, near)}")
    if kind := irregular(path):
        raise InputError(f"{named[1:]} is {kind}; name a robot file".lstrip())
    if path.suffix.lower() in YAML:
        raise InputError(f"{named[1:]} is YAML; name a URDF, xacro, MJCF, SDF or USD file".lstrip())
    if path.stat().st_size > MOST_BYTES and path.suffix.lower() not in OF_USD:
        size = f"{path.stat().st_size / 1e6:.3g} MB, a robot file has at most {MOST_BYTES / 1e6:.3g} MB"
        raise InputError(f"{named[1:]} has {size}; take out what is no link and no joint".lstrip())


def format_of(path: Path) -> str:
    """`usd` by the suffix; `urdf`, `mjcf` or `sdf` by the root element. Raises InputError for other files."""
    if path.suffix.lower() in OF_USD:
        return "usd"
    root = parse_xml(read_text(path), str(path))
    if root.tag not in ROOTS:
        expected = "expected the element <robot> of URDF, <mujoco> of MJCF or <sdf> of SDF"
        raise InputError(f"{expected}, got <{root.tag}>", SourceLocation(str(path), root.line))
    return ROOTS[root.tag]


def read_robot(
    path: Path,
    format: str,
    xacro_arguments: Mapping[str, str] | None = None,
    packages: Sequence[Path] = (),
    model: str | None = None,
) -> RobotFile:
    """What a robot file of this format states; see `read_urdf`, `read_mjcf`, `read_sdf` and `read_usd`."""
    if format == "mjcf":
        return read_mjcf(path)
    if format == "sdf":
        return read_sdf(path, model, packages)
    if format == "usd":
        return read_usd(path)
    return read_urdf(path, xacro_arguments, packages)
