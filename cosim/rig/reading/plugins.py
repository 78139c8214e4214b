"""Sections of a rig that name a plug-in by its `type`: the module's `Params` declares the further keys."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

from cosim.control.feedforward_table import FeedforwardTable
from cosim.control.input_shaping import Shaping
from cosim.control.repetition import RepeatOption
from cosim.core.compile.process_exits import user_code
from cosim.core.errors import InputError, InputErrors, SectionError, where_raised
from cosim.core.plugin_loading import TRAJECTORY, PluginKind, find, known_names
from cosim.core.tables.joint_table import TableFile
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


# keys that every type of a kind takes, with the dataclass of their section, in the order in which they act
OPTIONS: Mapping[PluginKind, Mapping[str, type]] = {
    TRAJECTORY: {"repeat": RepeatOption, "shaping": Shaping, "feedforward": FeedforwardTable},
}


def read_plugin(
    kind: PluginKind,
    data: Mapping[str, YamlValue],
    path: tuple,
    reading: Reading,
    joints: Mapping[str, str | None] | None,
    n: int | None = None,
    besides: Iterable[str] = (),
    hint: str = "",
    all_joints: Collection[str] = (),
) -> Plugin | None:
    """The plug-in that the section `data` at `path` names; None after an error, recorded in `reading`.

    joints, n: as in `schema.Reading`; besides: as in `schema.read`; hint: as in
    `read_type`; all_joints: of the rig, where they are known. The parameters are the further keys of the section.
    """
    module = read_type(kind, data, path, reading, hint)
    if module is None:
        return None
    foreign: Mapping[str, str] = getattr(module, "FOREIGN_KEYS", {})  # key -> what is wrong with it in this type
    for key in (key for key in data if key in foreign):
        return reading.fail((*path, key), foreign[key])
    options = tuple(
        (key, _of_joints(_option(cls, data[key], (*path, key), reading), joints, all_joints))
        for key, cls in OPTIONS.get(kind, {}).items()
        if data.get(key) is not None
    )
    keys = ("type", *besides, *OPTIONS.get(kind, ()))
    taken = [field.name for field in fields(module.Params) if field.name in keys]
    if taken:
        what = f"{data['type']}: its parameter '{taken[0]}' has the name of a key that the rig file reads itself"
        return reading.fail((*path, "type"), f"{what}; give it another name")
    read = schema.read(module.Params, data, path, reading.of(joints, n), besides=keys)
    params = _of_joints(read, joints, all_joints)
    slide = next((name for name, joint in (joints or {}).items() if joint == "prismatic"), None)
    if kind is TRAJECTORY and slide is not None and getattr(params, "wrap", None) == "shortest":
        return reading.fail((*path, "wrap"), f"joint '{slide}' is prismatic and has no turns; take it out")
    return None if params is None or (None in dict(options).values()) else Plugin(data["type"], module, params, options)


def _option(cls: type, data: YamlValue, path: tuple, reading: Reading) -> Any:
    """The parameters of an option, some of which may be written in short. None after an error."""
    return schema.read(cls, cls.in_full(data) if hasattr(cls, "in_full") else data, path, reading)


def _of_joints(params: Any, joints: Mapping[str, str | None] | None, all_joints: Collection[str]) -> Any:
    """The parameters; those of a table know the kinds of their joints."""
    return params.of_joints(joints, all_joints) if isinstance(params, TableFile) and joints else params


def read_type(
    kind: PluginKind, data: Mapping[str, YamlValue], path: tuple, reading: Reading, hint: str = ""
) -> ModuleType | None:
    """The module that the section `data` at `path` names; None after an error, recorded in `reading`. hint: added
    where there is no type."""
    name = data.get("type")
    if isinstance(name, str):
        return find_module(kind, name, (*path, "type"), reading)
    wrong = f"expected text, got {schema.show(name)}" if "type" in data else "missing key 'type'"
    at = (*path, "type") if "type" in data else path
    return reading.fail(at, f"{wrong}; known: {', '.join(known_names(kind))}{hint if 'type' not in data else ''}")


def find_module(kind: PluginKind, name: str, path: tuple, reading: Reading) -> ModuleType | None:
    """The module of the plug-in that the rig names at `path`; None after an error, recorded in `reading`."""
    try:
        return find(kind, name, reading.folder, reading.place(path))
    except InputError as error:
        reading.errors.append(error)
        return None


def read_named_plugin(kind: PluginKind, type: str, params: YamlValue, path: tuple, reading: Reading) -> Plugin | None:
    """The plug-in that the section at `path` names by its `type`, with the parameters under its key `params`."""
    module = find_module(kind, type, (*path, "type"), reading)
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
