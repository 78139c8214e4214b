"""Plug-ins: a section of a rig names a module by its `type`, and the module's `Params` declares its further keys.

A type is the name of a module in the folder of its kind, the name of an entry point of another distribution, or a `.py`
file relative to the folder of the rig. The kinds are listed here; plug-ins are not listed.
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
from functools import cache
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

from cosim.control.feedforward_table import FeedforwardTable
from cosim.control.input_shaping import Shaping
from cosim.core.compile.process_exits import refuse_exits, user_code
from cosim.core.errors import InputError, InputErrors, SectionError, SourceLocation, did_you_mean, where_raised
from cosim.core.paths import irregular, locate
from cosim.core.trust.data_only import PYTHON, refuse_code
from cosim.rig.reading import schema
from cosim.rig.reading.schema import Reading
from cosim.rig.reading.yaml_source import YamlValue

T = TypeVar("T")


class Plugin(NamedTuple):
    """A section of the rig that names a module: its `type`, the module, the parameters in the section, and by key the
    parameters of its options."""

    type: str
    module: ModuleType
    params: Any
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """The type without folders and suffix."""
        return name_of(self.type)


def name_of(type: str) -> str:
    """The name of a part of this `type`: of a file its stem."""
    return Path(type).stem if type.endswith(".py") else type


@dataclass(frozen=True)
class PluginKind:
    """A kind of plug-in. word: its name in messages; package: of the plug-ins of this program ("": none); needs: names
    that a module must define; group: of entry points of other distributions; options: keys that every type takes, with
    the dataclass of their section."""

    word: str
    package: str
    needs: tuple[str, ...]
    group: str
    options: tuple[tuple[str, type], ...] = ()


ACTUATOR = PluginKind("actuator", "cosim.plugins.actuators", ("Params", "load"), "cosim.actuators")
COMPONENT = PluginKind("component", "cosim.mechanics.bondgraph.components", ("Params", "build"), "cosim.components")
TRAJECTORY = PluginKind(
    "trajectory",
    "cosim.plugins.trajectories",
    ("Params", "load"),
    "cosim.trajectories",
    (("shaping", Shaping), ("feedforward", FeedforwardTable)),
)
CONTROLLER = PluginKind("controller", "cosim.plugins.controllers", ("Params", "load"), "cosim.controllers")
DRIVER = PluginKind(
    "driver",
    "cosim.plugins.drivers",
    ("Params", "JointParams", "MODES", "load", "emulate", "host", "device", "connection_name", "traffic"),
    "cosim.drivers",
)
JOINT = PluginKind("joint", "", ("Params", "load"), "cosim.joints")
CONSTRAINT = PluginKind("constraint", "", ("Params", "load"), "cosim.constraints")
FORCE = PluginKind("force law", "", ("Params", "load"), "cosim.forces")
SHAPES = PluginKind("mode shapes", "", ("Params", "load"), "cosim.shapes")
PART = PluginKind("part", "", ("Params", "load"), "cosim.parts")


def read_plugin(
    kind: PluginKind,
    data: Mapping[str, YamlValue],
    path: tuple,
    reading: Reading,
    joints: Mapping[str, str | None] | None,
    n: int | None = None,
    besides: Iterable[str] = (),
) -> Plugin | None:
    """The plug-in that the section `data` at `path` names; None after an error, recorded in `reading`.

    joints, n: as in `schema.Reading`; besides: as in `schema.read`. The parameters are the further keys of the section.
    """
    module = read_type(kind, data, path, reading)
    if module is None:
        return None
    foreign: Mapping[str, str] = getattr(module, "FOREIGN_KEYS", {})  # key -> what is wrong with it in this type
    for key in (key for key in data if key in foreign):
        return reading.fail((*path, key), foreign[key])
    options = tuple(
        (key, schema.read(cls, data[key], (*path, key), reading))
        for key, cls in kind.options
        if data.get(key) is not None
    )
    keys = ("type", *besides, *(key for key, _ in kind.options))
    params = schema.read(module.Params, data, path, reading.of(joints, n), besides=keys)
    return None if params is None or (None in dict(options).values()) else Plugin(data["type"], module, params, options)


def read_type(kind: PluginKind, data: Mapping[str, YamlValue], path: tuple, reading: Reading) -> ModuleType | None:
    """The module that the section `data` at `path` names; None after an error, recorded in `reading`."""
    name = data.get("type")
    if isinstance(name, str):
        return _find(kind, name, path, reading)
    wrong = f"expected text, got {schema.show(name)}" if "type" in data else "missing key 'type'"
    at = (*path, "type") if "type" in data else path
    return reading.fail(at, f"{wrong}; known: {', '.join(known_names(kind))}")


def read_named_plugin(kind: PluginKind, type: str, params: YamlValue, path: tuple, reading: Reading) -> Plugin | None:
    """The plug-in that the section at `path` names by its `type`, with the parameters under its key `params`."""
    module = _find(kind, type, path, reading)
    read = None if module is None else schema.read(module.Params, params, (*path, "params"), reading)
    return None if module is None or read is None else Plugin(type, module, read)


def load_plugin(plugin: Plugin, path: tuple, reading: Reading, *context: Any) -> Any:
    """The result of the module's `load`; None after an error, recorded in `reading`."""
    return call_checked(lambda: plugin.module.load(plugin.params, *context), path, reading)


def call_checked(make: Callable[[], T], path: tuple, reading: Reading) -> T | None:
    """The result of `make`; None after an error in it, recorded in `reading`. path: of the section, the location of
    errors without one."""
    try:
        with user_code():
            return make()
    except InputErrors as many:
        reading.errors.extend(_located(error, path, reading) for error in many.errors)
    except InputError as error:
        reading.errors.append(_located(error, path, reading))
    except (Exception, SystemExit) as error:  # of user code
        what = f"{type(error).__name__}: {' '.join(str(error).split())} ({where_raised(error)})"
        reading.fail(path, f"cannot be set up: {what}")
    return None


def _located(error: InputError, path: tuple, reading: Reading) -> InputError:
    """The error with its place; path: of the section."""
    if isinstance(error, SectionError):
        return InputError(error.what, reading.place((*path, *error.keys)))
    return InputError(error.what, error.place or reading.place(path))


def _find(kind: PluginKind, name: str, path: tuple, reading: Reading) -> ModuleType | None:
    try:
        return find(kind, name, reading.folder, reading.place((*path, "type")))
    except InputError as error:
        reading.errors.append(error)
        return None


def find(kind: PluginKind, name: str, folder: Path, place: SourceLocation) -> ModuleType:
    """The module of the plug-in called `name`: a file relative to `folder`, a module of the package, or an entry point.

    Raises InputError: at `place` if there is none or it is of another kind, in the module's file if its import fails.
    """
    if name.endswith(".py"):
        try:
            path = locate(name, folder)
        except InputError as error:
            raise InputError(error.what, place) from None
        refuse_code(name, PYTHON, place)
        if found := irregular(path):
            raise InputError(f"'{name}' is {found}; name a Python file", place)
        if not path.is_file():
            raise InputError(f"no such file '{name}' beside the rig", place)
        return _import(kind, lambda: _import_file(path), str(path), place)
    target = f"{kind.package}.{name}"
    spec = importlib.util.find_spec(target) if kind.package and name.isidentifier() and name != "__init__" else None
    if spec is not None and not _is_shared_code(kind, target):
        return _import(kind, lambda: importlib.import_module(target), str(spec.origin), place)
    for entry in _entry_points(kind.group, tuple(sys.path)):
        if entry.name == name:
            refuse_exits()
            return _import(kind, entry.load, f"entry point {entry.value}", place)
    instead = did_you_mean(name, known_names(kind)) or "; give the path of a file ending in .py"
    raise InputError(f"unknown {kind.word} '{name}'{instead}", place)


def entry_names(kind: PluginKind) -> list[str]:
    """Names of the plug-ins of other distributions."""
    return sorted({entry.name for entry in _entry_points(kind.group, tuple(sys.path))})


@cache
def _entry_points(group: str, path: tuple[str, ...]) -> EntryPoints:
    """The entry points of all distributions on `sys.path`; looking for them takes 15 ms, and every body asks."""
    return entry_points(group=group)


def _module_names(package: str) -> list[str]:
    modules = pkgutil.iter_modules(importlib.import_module(package).__path__) if package else ()
    return sorted(module.name for module in modules)


def known_names(kind: PluginKind) -> list[str]:
    """Names of all plug-ins of a kind; other modules of its package lack names that the kind needs."""
    names = (name for name in _module_names(kind.package) if _is_plugin(kind, f"{kind.package}.{name}"))
    return [*names, *entry_names(kind)]


def _is_plugin(kind: PluginKind, target: str) -> bool:
    return not _missing(kind, target)


def _is_shared_code(kind: PluginKind, target: str) -> bool:
    """Whether a module of the package is what plug-ins share, not one that lacks a part."""
    return kind.needs[0] in _missing(kind, target)


def _missing(kind: PluginKind, target: str) -> list[str]:
    """The names that a module lacks for a plug-in; none for one whose import fails: a rig that names it gets the
    error."""
    try:
        module = importlib.import_module(target)
    except (Exception, SystemExit):
        return []
    return [name for name in kind.needs if not hasattr(module, name)]


def _import_file(file: Path) -> ModuleType:
    """Import `file` again; `sys.modules` has it because dataclasses look up their module there."""
    name = os.path.abspath(file)
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None  # the name ends in .py
    module = importlib.util.module_from_spec(spec)
    refuse_exits()
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
        with user_code():
            module = load()
        missing = [name for name in kind.needs if not hasattr(module, name)]
        if not missing:
            schema.hints_of(module.Params)
    except (Exception, SystemExit) as error:  # user code may raise anything
        raise InputError(*_import_error(kind, error, file)) from error
    defects = [f"does not define {' and '.join(missing)}"] if missing else []
    for name in kind.needs:
        if not missing and name.endswith("Params") and not dataclasses.is_dataclass(getattr(module, name)):
            defects.append(f"has a {name} that is no dataclass")
    if defects:
        raise InputError(f"{file} is no {kind.word}: it {defects[0]}", place)
    return module


def _import_error(kind: PluginKind, error: BaseException, file: str) -> tuple[str, SourceLocation]:
    """Message and location of a failed import."""
    if isinstance(error, SyntaxError) and error.filename:
        line, text = SourceLocation(_shown_path(error.filename, file), error.lineno), error.msg
    else:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame.lineno for frame in frames if frame.filename == os.path.abspath(file)]
        line = SourceLocation(file, own[-1] if own else None)
        text = str(error)
    return f"the {kind.word} cannot be imported: {type(error).__name__}: {' '.join(text.split())}", line


def _shown_path(filename: str, file: str) -> str:
    """The plug-in's file as written in the rig; other files unchanged."""
    return file if filename == os.path.abspath(file) else filename
