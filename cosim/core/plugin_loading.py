"""Plug-ins: modules that are found by a name, and loaded. The kinds are listed here; plug-ins are not listed.

A name is that of a module in the folder of its kind, of an entry point of another distribution, or a `.py` file, in a
rig relative to its folder.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import os
import pkgutil
import sys
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from cosim.core.compile.process_exits import refuse_exits, user_code
from cosim.core.errors import InputError, SourceLocation, did_you_mean
from cosim.core.paths import irregular, locate
from cosim.core.trust.data_only import PYTHON, refuse_code
from cosim.core.types import hints_of


@dataclass(frozen=True)
class PluginKind:
    """A kind of plug-in. word: its name in messages; package: of the plug-ins of this program ("": none); needs: names
    that a module must define; group: of entry points of other distributions ("": all are in the package, and a name is
    no file)."""

    word: str
    package: str
    needs: tuple[str, ...]
    group: str = ""


ACTUATOR = PluginKind("actuator", "cosim.plugins.actuators", ("Params", "load"), "cosim.actuators")
COMPONENT = PluginKind("component", "cosim.mechanics.bondgraph.components", ("Params", "build"), "cosim.components")
CONSTRAINT = PluginKind("constraint", "", ("Params", "load"), "cosim.constraints")
CONTROLLER = PluginKind("controller", "cosim.plugins.controllers", ("Params", "load"), "cosim.controllers")
DRIVER = PluginKind(
    "driver",
    "cosim.plugins.drivers",
    ("Params", "JointParams", "MODES", "load", "emulate", "host", "device", "connection_name", "traffic"),
    "cosim.drivers",
)
FORCE = PluginKind("force law", "", ("Params", "load"), "cosim.forces")
FORMULATION = PluginKind("formulation", "cosim.mechanics.formulations", ("ABOUT", "SOURCE", "refusal", "load"))
JOINT = PluginKind("joint", "", ("Params", "load"), "cosim.joints")
OPTIMISER = PluginKind("optimiser", "cosim.apps.tuning.optimisers", ("ABOUT", "load"))
PART = PluginKind("part", "", ("Params", "load"), "cosim.parts")
SHAPES = PluginKind("mode shapes", "", ("Params", "load"), "cosim.shapes")
TRAJECTORY = PluginKind("trajectory", "cosim.plugins.trajectories", ("Params", "load"), "cosim.trajectories")


def find(kind: PluginKind, name: str, folder: Path = Path(), place: SourceLocation | str | None = None) -> ModuleType:
    """The module of the plug-in called `name`: a file relative to `folder`, a module of the package, or an entry point.

    Raises InputError: at `place` if there is none or it is of another kind, in the module's file if its import fails.
    """
    if kind.group and name.endswith(".py"):
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
    raise InputError(unknown(kind, name), place)


def unknown(kind: PluginKind, name: str, besides: Iterable[str] = ()) -> str:
    """What is wrong with a name that nothing has; besides: names of the kind that are no plug-ins."""
    instead = did_you_mean(name, [*besides, *known_names(kind)]) or "; give the path of a file ending in .py"
    return f"unknown {kind.word} '{name}'{instead}"


def entry_names(kind: PluginKind) -> list[str]:
    """Names of the plug-ins of other distributions."""
    return sorted({entry.name for entry in _entry_points(kind.group, tuple(sys.path))})


@cache
def _entry_points(group: str, path: tuple[str, ...]) -> EntryPoints:
    """The entry points of all distributions on `sys.path`; looking for them takes 15 ms, and every body asks."""
    return entry_points(group=group) if group else EntryPoints()


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


def _import(kind: PluginKind, load: Callable[[], Any], file: str, place: SourceLocation | str | None) -> ModuleType:
    """The module that `load` imports, after checking that it is a plug-in of this kind."""
    try:
        with user_code():
            module = load()
        missing = [name for name in kind.needs if not hasattr(module, name)]
        if not missing and "Params" in kind.needs:
            hints_of(module.Params)
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
