"""The files of a rig, to take it elsewhere: the rig, its robot, plug-ins and tables by name.

The names are paths relative to the folder that all files have in common, so the rig finds them where they are unpacked
(`cosim.rig.unpacked_rig`).
"""

from __future__ import annotations

import ast
import hashlib
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cosim.core.errors import CosimError, InputError
from cosim.core.paths import expand, locate
from cosim.mechanics.multibody.description.robot_formats import SUFFIXES as ROBOTS
from cosim.mechanics.multibody.description.robot_formats import format_of, read_robot
from cosim.rig.reading.input_tracking import InputTracker, modules_of_user
from cosim.rig.reading.yaml_source import Override, load_yaml, overlays_of
from cosim.rig.sections.rig_spec import read_rig

if TYPE_CHECKING:
    from cosim.rig.reading.plugins import Plugin
    from cosim.rig.sections.rig_spec import RigSpec
    from cosim.rig.wiring.wired_rig import WiredRig

AS_RUN = ".as_run.yaml"


@dataclass(frozen=True)
class RigFiles:
    """The files of a rig, with the names by which it finds them elsewhere.

    contents: name -> content; rig: name of the rig file among them; as_run: of the rig as it ran, after overrides;
    changed: names of files that are no longer what the rig was built from; root: the folder that they are below.
    """

    contents: dict[str, bytes]
    rig: str
    as_run: str
    changed: tuple[str, ...]
    root: Path


def files_of(rig: WiredRig) -> RigFiles:
    """Every file that the rig was built from, except files of installed programs."""
    import yaml

    path, source = rig.spec.path.absolute(), rig.spec.source
    read = {Path(file): digest for file, digest in rig.cached.files.items() if _belongs(file, digest)}
    read.pop(path, None)  # its text was kept
    for file in _imported_before(read):
        read[file] = _digest(file)
    root = Path(os.path.commonpath([path.parent, *(file.parent for file in read)]))
    contents = {_name(path, root): source.text.encode()}
    changed = []
    for file, digest in read.items():
        contents[_name(file, root)] = file.read_bytes() if file.exists() else b""
        if _digest(file) != digest:
            changed.append(_name(file, root))
    as_run = path.with_name(path.stem + AS_RUN)
    data = _relocated(source.data, path.parent, [path, *read])
    text = yaml.safe_dump(data, allow_unicode=True, sort_keys=False)
    contents[_name(as_run, root)] = text.encode()
    return RigFiles(contents, _name(path, root), _name(as_run, root), tuple(changed), root)


def input_files(rig: WiredRig, overrides: Iterable[Override] = ()) -> dict[Path, str]:
    """Every file that the rig, and these overrides of it, were read from -> its part of the rig."""
    found = rig.cached.get("input_files", lambda: _input_files(rig))
    return {**dict.fromkeys(overlays_of(overrides), "an overlay"), **found}


def files_named_by(path: Path) -> dict[Path, str]:
    """The same of a rig that was not built, or of a robot file: what is opened while it is read, and existing files
    that it names. A mistake in it ends the reading, and is not raised."""
    tracker, data = InputTracker(), {}
    with tracker, suppress(CosimError):
        if path.suffix.lower() in ROBOTS:
            read_robot(path, format_of(path))
        else:
            source = load_yaml(path)
            data = source.data
            read_rig(source)
    read = [Path(file) for file, digest in tracker.files.items() if _belongs(file, digest)]
    files = ((text, _file_named(text, path.parent)) for text in _texts(data))
    named = {file.absolute(): f"'{text}'" for text, file in files if file is not None}
    return {**dict.fromkeys([*read, *_imported_before([*read, *named])], "a file"), **named}


def _texts(data: Any) -> Iterator[str]:
    """All texts in a rig."""
    if isinstance(data, str):
        yield data
    for item in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from _texts(item)


def _file_named(text: str, folder: Path) -> Path | None:
    try:
        file = locate(text, folder)
        return file if file.is_file() else None
    except (InputError, OSError, ValueError):  # no file, but a text that is too long or has other characters
        return None


def _input_files(rig: WiredRig) -> dict[Path, str]:
    spec = rig.spec
    found = {Path(file): "a file" for file, digest in rig.cached.files.items() if _belongs(file, digest)}
    found[spec.path.absolute()] = "the file"
    if spec.mechanism.urdf is not None:
        found[spec.mechanism.urdf] = "the URDF"
    for plugin in plugins_of(spec):
        if plugin.module.__file__:
            found[Path(plugin.module.__file__)] = f"'{plugin.type}'"
        if isinstance(file := getattr(plugin.params, "file", None), str):
            found[locate(file, spec.path.parent)] = f"'{file}'"
    return found


def plugins_of(spec: RigSpec) -> Iterator[Plugin]:
    """The plug-ins of controllers and joints that the rig names."""
    for controller in spec.controllers:
        yield from filter(None, (controller.plugin, controller.trajectory, controller.fallback))
    for joint in spec.joints.values():
        yield from filter(None, (joint.actuator, joint.prescribed))


def plugin_digests(rig: WiredRig) -> dict[str, str]:
    """Type -> SHA-256 of the module, of plug-ins that are installed rather than among the files of the rig."""
    files = rig.cached.files
    modules = {plugin.type: plugin.module.__file__ for plugin in plugins_of(rig.spec)}
    return {
        type: hashlib.sha256(Path(file).read_bytes()).hexdigest()
        for type, file in sorted(modules.items())
        if file and os.path.abspath(file) not in files
    }


def _imported_before(files: Iterable[Path]) -> list[Path]:
    """Files of modules of the user that these Python files import, directly or not, and that this program had
    imported before."""
    modules, seen = dict(modules_of_user()), set(files)
    waiting, found = [file for file in seen if file.suffix == ".py"], []
    while waiting:
        for name in _imports(waiting.pop()):
            file = Path(modules[name]) if name in modules else None
            if file is not None and file not in seen:
                seen.add(file)
                found.append(file)
                waiting.append(file)
    return found


def _imports(file: Path) -> set[str]:
    """The names of modules that a Python file imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_bytes()) if file.exists() else ast.Module([], [])):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.exists() else ""


def _belongs(file: str, digest: str) -> bool:
    return bool(digest) and file not in sys.path and os.path.isfile(file)


def _name(file: Path, root: Path) -> str:
    return file.relative_to(root).as_posix()


def _relocated(data: Any, folder: Path, files: list[Path]) -> Any:
    """The data with absolute paths of files, and of folders above them, relative to the folder of the rig."""
    if isinstance(data, dict):
        return {key: _relocated(value, folder, files) for key, value in data.items()}
    if isinstance(data, list):
        return [_relocated(item, folder, files) for item in data]
    if not isinstance(data, str) or not data.startswith(("/", "~", "$")):
        return data
    try:
        path = Path(os.path.normpath(expand(data)))
    except InputError:
        return data
    inside = path.is_absolute() and any(path == file or path in file.parents for file in files)
    return os.path.relpath(path, folder) if inside else data
