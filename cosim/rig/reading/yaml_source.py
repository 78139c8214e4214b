"""YAML with locations: plain data, the line of every key and element, and `--set` overrides.

Scalars follow the core schema of YAML 1.2, not YAML 1.1 as in PyYAML: `1e-3` is a number, `010` is ten, and `on`,
`off`, `yes` and `no` are text. Keys are always text.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from cosim.errors import InputError, InputErrors, SourceLocation, did_you_mean

# plain data of a file: None, bool, int, float, str, or lists and mappings of such
YamlValue: TypeAlias = Any

_TAG = "tag:yaml.org,2002:"
_FLOAT = r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"

# tag, pattern of a plain scalar, its possible first characters, conversion from text;
# the first match counts, so integers come before floats
_SCALARS = (
    ("null", "~|null|Null|NULL|", ["~", "n", "N", ""], lambda text: None),
    ("bool", "true|True|TRUE|false|False|FALSE", list("tTfF"), lambda text: text.lower() == "true"),
    ("int", "[-+]?(?:0|[1-9][0-9]*)|0x[0-9a-fA-F]+", list("-+0123456789"), lambda text: int(text, 0)),
    ("float", _FLOAT, list("-+.0123456789"), lambda text: float(re.sub(r"\.(?=inf|nan)", "", text.lower()))),
    ("str", None, None, str),
    ("merge", "<<", ["<"], str),
)
_VALUES = {_TAG + tag: value for tag, _, _, value in _SCALARS}


class _Loader(yaml.SafeLoader):
    """PyYAML's safe composer with the scalars of `_SCALARS`."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML expects a class attribute


for _tag, _pattern, _first, _ in _SCALARS:
    if _pattern is not None:
        _Loader.add_implicit_resolver(_TAG + _tag, re.compile(rf"(?:{_pattern})\Z"), _first)


def dotted(path: Sequence[str | int]) -> str:
    """A path in the notation of messages: `controllers[0].kp`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


@dataclass(frozen=True)
class YamlSource:
    """A YAML file: its text, its plain data, and for each path its line, or the `--set` that it came from."""

    file: str
    text: str
    data: dict[str, YamlValue]
    marks: dict[tuple, int | str]

    def place(self, path: tuple) -> SourceLocation:
        """The location of the key or element at `path`; of an absent one, with the line of its nearest parent."""
        mark = next((self.marks[path[:k]] for k in range(len(path), -1, -1) if path[:k] in self.marks), None)
        if isinstance(mark, str):
            return SourceLocation(f"--set {mark}")
        return SourceLocation(self.file, mark, dotted(path))


def load_yaml(path: str | Path) -> YamlSource:
    """Read a YAML file whose top level is a mapping.

    Raises InputError for a file that is missing, empty or not YAML, InputErrors for duplicate keys.
    """
    file = str(path)
    text = _text(Path(path))
    try:
        data, marks = _parse(text, file)
    except RecursionError:
        raise InputError("nested too deeply, or an alias inside its own anchor", SourceLocation(file)) from None
    if data is None:
        raise InputError("the file is empty; it needs at least a 'mechanism'", SourceLocation(file))
    if not isinstance(data, dict):
        place = YamlSource(file, text, {}, marks).place(())
        raise InputError("expected 'key: value' lines at the top level", place)
    return YamlSource(file, text, data, marks)


def override(source: YamlSource, text: str) -> YamlSource:
    """`source` with one value replaced according to `text`, such as `controllers.arm.kp=200`.

    An element of a list is named by its index or its `name` (a controller without a name by its `type`). Missing
    sections are created. The value is YAML. Raises InputError for a text that is not `key=value`, for an element that
    does not exist, and for a key of a value that is not a mapping.
    """
    place = SourceLocation(f"--set {text}")
    key, equals, value_text = text.partition("=")
    parts = re.findall(r"[^.\[\]\s]+", key)
    if not equals or not parts:
        raise InputError("expected key=value, for example schedule.step=2ms", place)
    value = read_value(value_text, place)
    data = copy.deepcopy(source.data)
    parent: YamlValue = data
    path: tuple = ()
    created: list[tuple] = []
    for i, part in enumerate(parts):
        last = i == len(parts) - 1
        known = _children(parent)
        if part not in known and not isinstance(parent, dict):
            where = dotted(path) or "the file"
            raise InputError(f"no '{part}' in {where}{did_you_mean(part, known)}", place)
        path = (*path, known.get(part, part))
        if last:
            parent[path[-1]] = value
        elif isinstance(parent, dict):
            if parent.get(path[-1]) is None:
                parent[path[-1]] = {}
                created.append(path)
            parent = parent[path[-1]]
        else:
            parent = parent[path[-1]]
    marks = {at: mark for at, mark in source.marks.items() if at[: len(path)] != path}
    return YamlSource(source.file, source.text, data, {**marks, **dict.fromkeys([*created, path], text)})


def read_value(text: str, place: SourceLocation) -> YamlValue:
    """The plain data of a YAML value of the command line. Raises InputError with the location `place`."""
    try:
        return _parse(text, str(place))[0]
    except InputErrors as many:
        raise InputError(many.errors[0].what, place) from None
    except InputError as error:
        raise InputError(error.what, place) from None


def _children(data: YamlValue) -> dict[str, str | int]:
    """Names of the elements of `data` in a path -> key or index."""
    if isinstance(data, dict):
        return {key: key for key in data}
    if isinstance(data, list):
        mappings = ((i, item) for i, item in enumerate(data) if isinstance(item, dict))
        names = {str(item.get("name") or Path(str(item.get("type", i))).stem): i for i, item in mappings}
        return {**names, **{str(i): i for i in range(len(data))}}
    return {}


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError("no such file", SourceLocation(str(path))) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", SourceLocation(str(path))) from None
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text", SourceLocation(str(path))) from None


def _parse(text: str, file: str) -> tuple[YamlValue, dict[tuple, int | str]]:
    """(plain data, None if the document is empty; line of each path)."""
    try:
        loader = _Loader(text)
        builder = _Builder(loader, file)
        node = loader.get_single_node()
        data = builder.build(node, ()) if node is not None else None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        fix = "; indent with spaces" if "'\\t'" in str(error.problem) else ""
        what = f"broken YAML: {error.problem or error.context}{fix}"
        raise InputError(what, SourceLocation(file, mark.line + 1 if mark else None)) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        what = f"broken YAML: character {chr(error.character)!r} is not allowed"
        raise InputError(what, SourceLocation(file, line)) from None
    if builder.errors:
        raise InputErrors(builder.errors)
    return data, builder.marks


class _Builder:
    """Converts YAML nodes to plain data and records lines and errors."""

    def __init__(self, loader: _Loader, file: str) -> None:
        self.loader = loader
        self.file = file
        self.marks: dict[tuple, int | str] = {}
        self.errors: list[InputError] = []
        self._flattened: set[int] = set()  # aliases refer to the same mapping node

    def build(self, node: yaml.Node, path: tuple) -> YamlValue:
        self.marks.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.SequenceNode) and node.tag == _TAG + "seq":
            return [self._child(child, child, (*path, i)) for i, child in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode) and node.tag == _TAG + "map":
            self._flatten(node, path)
            return {key.value: self._child(key, value, (*path, key.value)) for key, value in node.value}
        if isinstance(node, yaml.ScalarNode) and node.tag in _VALUES:
            try:
                return _VALUES[node.tag](node.value)
            except ValueError:
                return self._fail(node, path, f"'{node.value}' is no {node.tag.removeprefix(_TAG)}")
        return self._fail(node, path, f"unknown tag '{node.tag}'; leave it out")

    def _child(self, mark: yaml.Node, node: yaml.Node, path: tuple) -> YamlValue:
        self.marks[path] = mark.start_mark.line + 1
        return self.build(node, path)

    def _flatten(self, node: yaml.MappingNode, path: tuple) -> None:
        """Check the keys of a mapping and resolve its `<<` merges, once."""
        if id(node) in self._flattened:
            return
        self._flattened.add(id(node))
        first: dict[str, int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a key must be a single word", problem_mark=key.start_mark)
            if key.value in first:
                what = f"key '{key.value}' is given twice; the first is in line {first[key.value]}"
                self._fail(key, path, what)
            first.setdefault(key.value, key.start_mark.line + 1)
        self.loader.flatten_mapping(node)

    def _fail(self, node: yaml.Node, path: tuple, what: str) -> None:
        self.errors.append(InputError(what, SourceLocation(self.file, node.start_mark.line + 1, dotted(path))))
