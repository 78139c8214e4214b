"""Plug-ins: a section of a rig names a module by its `type`, and the module's `Params` declares its further keys.

A type is the name of a module in the folder of its kind, the name of an entry point of another distribution, or a `.py`
file, relative to the folder of the rig. The kinds are listed here; the plug-ins of a kind are listed nowhere.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import os
import pkgutil
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeVar, get_type_hints

from cosim.errors import InputError, InputErrors, SourceLocation, did_you_mean, where_raised
from cosim.rig.reading import schema
from cosim.rig.reading.schema import Reading

T = TypeVar("T")


class Plugin(NamedTuple):
    """A section of the rig that names a module: its `type`, the module, and the parameters in the section."""

    type: str
    module: ModuleType
    params: Any

    @property
    def name(self) -> str:
        """The type without folders and suffix."""
        return name_of(self.type)


def name_of(type: str) -> str:
    """What a part of this `type` is called: a name as it is, a file by its stem."""
    return Path(type).stem if type.endswith(".py") else type


@dataclass(frozen=True)
class PluginKind:
    """A kind of plug-in. word: in messages; package: of those that come with this program ("": none); needs: names that
    a module defines; group: of entry points of other distributions."""

    word: str
    package: str
    needs: tuple[str, ...]
    group: str


ACTUATOR = PluginKind("actuator", "cosim.actuators", ("Params", "load"), "cosim.actuators")
TRAJECTORY = PluginKind("trajectory", "cosim.trajectories", ("Params", "load"), "cosim.trajectories")
CONTROLLER = PluginKind("controller", "cosim.controllers", ("Params", "load"), "cosim.controllers")
DRIVER = PluginKind(
    "driver",
    "cosim.drivers",
    ("Params", "JointParams", "MODES", "load", "emulate", "host", "device", "connection_name", "traffic"),
    "cosim.drivers",
)
JOINT = PluginKind("joint", "", ("Params", "load"), "cosim.joints")
CONSTRAINT = PluginKind("constraint", "", ("Params", "load"), "cosim.constraints")


def read_plugin(
    kind: PluginKind,
    data: Mapping[str, Any],
    path: tuple,
    reading: Reading,
    joints: Mapping[str, str | None] | None,
    n: int | None = None,
    besides: Iterable[str] = (),
) -> Plugin | None:
    """The plug-in that the section `data` at `path` names; None after mistakes, noted in `reading`.

    joints, n: as in `schema.Reading`; besides: as in `schema.read`. The parameters are the further keys of the section.
    """
    module = read_type(kind, data, path, reading)
    if module is None:
        return None
    params = schema.read(module.Params, data, path, reading.of(joints, n), besides=("type", *besides))
    return None if params is None else Plugin(data["type"], module, params)


def read_type(kind: PluginKind, data: Mapping[str, Any], path: tuple, reading: Reading) -> ModuleType | None:
    """The module that the section `data` at `path` names; None after a mistake, noted in `reading`."""
    name = data.get("type")
    if isinstance(name, str):
        return _found(kind, name, path, reading)
    wrong = f"expected text, got {schema.show(name)}" if "type" in data else "missing key 'type'"
    at = (*path, "type") if "type" in data else path
    return reading.fail(at, f"{wrong}; known: {', '.join(_known(kind))}")


def read_named_plugin(kind: PluginKind, type: str, params: Any, path: tuple, reading: Reading) -> Plugin | None:
    """The plug-in that the section at `path` names by its `type`, with the parameters under its key `params`."""
    module = _found(kind, type, path, reading)
    read = None if module is None else schema.read(module.Params, params, (*path, "params"), reading)
    return None if module is None or read is None else Plugin(type, module, read)


def load_plugin(plugin: Plugin, path: tuple, reading: Reading, *context: Any) -> Any:
    """What the module makes of its parameters; None after a mistake, noted in `reading`."""
    return attempt(lambda: plugin.module.load(plugin.params, *context), path, reading)


def attempt(make: Callable[[], T], path: tuple, reading: Reading) -> T | None:
    """What `make` returns; None after an error in it, noted in `reading`. path: of the section, the place of errors
    that have none."""
    try:
        return make()
    except InputErrors as many:
        reading.errors.extend(many.errors)
    except InputError as error:
        reading.errors.append(InputError(error.what, error.place or reading.place(path)))
    except Exception as error:  # of the user's own code
        what = f"{type(error).__name__}: {' '.join(str(error).split())} ({where_raised(error)})"
        reading.fail(path, f"cannot be set up: {what}")
    return None


def _found(kind: PluginKind, name: str, path: tuple, reading: Reading) -> ModuleType | None:
    try:
        return find(kind, name, reading.folder, reading.place((*path, "type")))
    except InputError as error:
        reading.errors.append(error)
        return None


def find(kind: PluginKind, name: str, folder: Path, place: SourceLocation) -> ModuleType:
    """The module of the plug-in called `name`: a file relative to `folder`, a module of the package, or an entry point.

    Raises InputError: at `place` when there is none or it is of another kind, in the module's own file when
    it cannot be imported.
    """
    if name.endswith(".py"):
        path = folder / name
        if not path.is_file():
            raise InputError(f"no such file '{name}' beside the rig", place)
        return _import(kind, lambda: _module_of(path), str(path), place)
    if name in _names(kind.package):
        target = f"{kind.package}.{name}"
        spec = importlib.util.find_spec(target)
        file = str(spec.origin if spec else target)
        return _import(kind, lambda: importlib.import_module(target), file, place)
    for entry in entry_points(group=kind.group):
        if entry.name == name:
            return _import(kind, entry.load, f"entry point {entry.value}", place)
    raise InputError(f"unknown {kind.word} '{name}'{did_you_mean(name, _known(kind))}", place)


def entry_names(kind: PluginKind) -> list[str]:
    """Names of the plug-ins of other distributions."""
    return sorted({entry.name for entry in entry_points(group=kind.group)})


def _names(package: str) -> list[str]:
    modules = pkgutil.iter_modules(importlib.import_module(package).__path__) if package else ()
    return sorted(module.name for module in modules)


def _known(kind: PluginKind) -> list[str]:
    """What a rig may name; a module of the package that lacks what the kind needs is a helper."""
    names = (name for name in _names(kind.package) if _is_part(kind, f"{kind.package}.{name}"))
    return [*names, *entry_names(kind)]


def _is_part(kind: PluginKind, target: str) -> bool:
    try:
        module = importlib.import_module(target)
    except (Exception, SystemExit):  # reported when a rig names it
        return True
    return all(hasattr(module, name) for name in kind.needs)


def _module_of(file: Path) -> ModuleType:
    """The module in `file`, imported anew; known to `sys.modules` because dataclasses look there."""
    name = os.path.abspath(file)
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None  # the name ends in .py
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _import(kind: PluginKind, load: Callable[[], Any], file: str, place: SourceLocation) -> ModuleType:
    """The module that `load` imports, after checking that it is a plug-in of this kind."""
    try:
        module = load()
        missing = [name for name in kind.needs if not hasattr(module, name)]
        if not missing:
            get_type_hints(module.Params)
    except (Exception, SystemExit) as error:  # the file is the user's: anything may happen in it
        raise InputError(*_failure(kind, error, file)) from error
    lacks = [f"does not define {' and '.join(missing)}"] if missing else []
    for name in kind.needs:
        if not missing and name.endswith("Params") and not dataclasses.is_dataclass(getattr(module, name)):
            lacks.append(f"has a {name} that is no dataclass")
    if lacks:
        raise InputError(f"{file} is no {kind.word}: it {lacks[0]}", place)
    return module


def _failure(kind: PluginKind, error: BaseException, file: str) -> tuple[str, SourceLocation]:
    """What to say of a module that failed, and the line of it where that happened."""
    if isinstance(error, SyntaxError) and error.filename:
        line, text = SourceLocation(_shown(error.filename, file), error.lineno), error.msg
    else:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame.lineno for frame in frames if frame.filename == os.path.abspath(file)]
        line = SourceLocation(file, own[-1] if own else None)
        text = str(error)
    return f"the {kind.word} cannot be imported: {type(error).__name__}: {' '.join(text.split())}", line


def _shown(filename: str, file: str) -> str:
    """The file as the user calls it, when it is the plug-in's own."""
    return file if filename == os.path.abspath(file) else filename
