"""YAML text to plain data with the line of every key and element.

Scalars follow the core schema of YAML 1.2, not YAML 1.1 as in PyYAML: `1e-3` is a number, `010` is ten, and `on`,
`off`, `yes` and `no` are text. Keys are always text. The number of values is bounded, because aliases can multiply them
without end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TypeAlias, cast

import yaml
from yaml.composer import Composer
from yaml.resolver import Resolver

from cosim.core.errors import ErrorList, InputError, InputErrors, SourceLocation, shortened

# plain data of a file: None, bool, int, float, str, or lists and mappings of such
YamlValue: TypeAlias = Any

MOST_VALUES = 10_000  # of a file, aliases replaced
DEEPEST = 50  # levels of lists and mappings
LONGEST_INTEGER = 400  # characters; longer ones are beyond the numbers of the program

_TAG = "tag:yaml.org,2002:"
_FLOAT = r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"


def _integer(text: str) -> int | float:
    return int(text, 0) if len(text) <= LONGEST_INTEGER else float(text)


# tag, pattern of a plain scalar, its possible first characters, conversion from text;
# the first match counts, so integers come before floats
_SCALARS = (
    ("null", "~|null|Null|NULL|", ["~", "n", "N", ""], lambda text: None),
    ("bool", "true|True|TRUE|false|False|FALSE", list("tTfF"), lambda text: text.lower() == "true"),
    ("int", "[-+]?(?:0|[1-9][0-9]*)|0x[0-9a-fA-F]+", list("-+0123456789"), _integer),
    ("float", _FLOAT, list("-+.0123456789"), lambda text: float(re.sub(r"\.(?=inf|nan)", "", text.lower()))),
    ("str", None, None, str),
    ("merge", "<<", ["<"], str),
)
_VALUES = {_TAG + tag: value for tag, _, _, value in _SCALARS}


def dotted(path: Sequence[str | int]) -> str:
    """A path as messages write it: `controllers[0].kp`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


# part of a complaint of PyYAML -> the fix
_FIXES = (
    ("'\\t'", "; indent with spaces"),
    ("found another document", "; a rig is one document, take out the line ---"),
    ("undefined alias", "; name an anchor that comes before"),
    ("expected ',' or ']'", "; end the list before with ']'"),
    ("expected ',' or '}'", "; end the mapping before with '}'"),
)


# where libyaml takes what YAML does not allow, or takes it for something else
_UNCLEAR = re.compile("[\t?!%\x85\u2028\u2029\ufeff]|[|>]#")


class TooManyValues(InputError):
    """A file has more than MOST_VALUES values."""


class _Composer(Composer, Resolver):
    """PyYAML's composer with the scalars of `_SCALARS` and bounds."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML expects a class attribute
    values = depth = 0
    file: str

    def compose_node(self, parent: Any, index: Any) -> yaml.Node | None:
        line = cast(Any, self).peek_event().start_mark.line + 1
        if parent is None or index is not None:  # no key
            self.values += 1
        check_number(self.values, SourceLocation(self.file, line))
        self.depth += 1
        if self.depth > DEEPEST:
            what = f"lists and mappings in more than {DEEPEST} levels; take some out"
            raise InputError(what, SourceLocation(self.file, line))
        try:
            return super().compose_node(parent, cast(Any, index))
        finally:
            self.depth -= 1


class _Loader(_Composer, yaml.SafeLoader):
    """Reads in Python: its complaints are those that `_FIXES` knows."""

    def __init__(self, text: str, file: str) -> None:
        yaml.SafeLoader.__init__(self, text)
        self.file = file


_LIBYAML: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # PyYAML may be built without it


class _FastLoader(_Composer, _LIBYAML):
    """Reads by libyaml, in a small part of the time."""

    def __init__(self, text: str, file: str) -> None:
        _LIBYAML.__init__(self, text)
        Composer.__init__(self)
        self.file = file


for _tag, _pattern, _first, _ in _SCALARS:
    if _pattern is not None:
        _Composer.add_implicit_resolver(_TAG + _tag, re.compile(f"^(?:{_pattern})$"), _first)


def check_number(values: int, place: SourceLocation) -> None:
    """Raise InputError for more values than a file may have."""
    if values > MOST_VALUES:
        what = f"more than {MOST_VALUES} values, each alias counted with its values"
        raise TooManyValues(f"{what}; use `repeat`, the joint `all` or a URDF", place)


def parse(text: str, file: str) -> tuple[YamlValue, dict[tuple, int | str]]:
    """(plain data, None if the document is empty; line of each path).

    Raises InputError for broken YAML and InputErrors for wrong keys and values, with places in `file`.
    """
    try:
        builder = _Builder(file)
        node = _node(text, file)
        data = builder.build(node, ()) if node is not None else None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = str(error.problem or error.context).removeprefix("but ")
        fix = next((fix for part, fix in _FIXES if part in problem), "")
        what = f"broken YAML: {problem}{fix}"
        raise InputError(what, SourceLocation(file, mark.line + 1 if mark else None)) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        what = f"broken YAML: character {chr(error.character)!r} is not allowed; take it out"
        raise InputError(what, SourceLocation(file, line)) from None
    if builder.errors:
        raise InputErrors(builder.errors)
    return data, builder.marks


def _node(text: str, file: str) -> yaml.Node | None:
    """The root of the document."""
    if not _UNCLEAR.search(text):
        with suppress(yaml.YAMLError, UnicodeError):
            return _FastLoader(text, file).get_single_node()
    return _Loader(text, file).get_single_node()


class _Builder:
    """Converts YAML nodes to plain data and records lines and errors."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.marks: dict[tuple, int | str] = {}
        self.errors = ErrorList()
        self._values = 0
        self._open: set[int] = set()  # nodes that are being built, and mappings that are being merged
        self._pairs: dict[int, dict[str, tuple[yaml.Node, yaml.Node]]] = {}  # aliases refer to the same node

    def build(self, node: yaml.Node, path: tuple) -> YamlValue:
        line = self.marks.setdefault(path, node.start_mark.line + 1)
        self._values += 1
        check_number(self._values, SourceLocation(self.file, int(line)))
        if id(node) in self._open:
            return self._fail(int(line), path, "the alias is inside its own anchor; take it out")
        if isinstance(node, yaml.ScalarNode) and node.tag in _VALUES:
            try:
                return _VALUES[node.tag](node.value)
            except ValueError:
                what = f"'{shortened(node.value)}' is no {node.tag.removeprefix(_TAG)}"
                return self._fail(node.start_mark.line + 1, path, what)
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode) and node.tag == _TAG + "seq":
                return [self._child(child, child, (*path, i)) for i, child in enumerate(node.value)]
            if isinstance(node, yaml.MappingNode) and node.tag == _TAG + "map":
                pairs = self._merged(node, path)
                return {name: self._child(key, value, (*path, name)) for name, (key, value) in pairs.items()}
        finally:
            self._open.discard(id(node))
        return self._fail(node.start_mark.line + 1, path, f"unknown tag '{node.tag}'; leave it out")

    def _child(self, mark: yaml.Node, node: yaml.Node, path: tuple) -> YamlValue:
        self.marks[path] = mark.start_mark.line + 1
        return self.build(node, path)

    def _merged(self, node: yaml.MappingNode, path: tuple) -> dict[str, tuple[yaml.Node, yaml.Node]]:
        """Key -> the nodes of key and value, `<<` merges included; the keys are checked once."""
        if id(node) in self._pairs:
            return self._pairs[id(node)]
        own: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        merged: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a key must be a single word", problem_mark=key.start_mark)
            if key.value in own:
                first = own[key.value][0].start_mark.line + 1
                what = f"key '{shortened(key.value)}' is given twice; the first is in line {first}"
                self._fail(key.start_mark.line + 1, path, what)
            own.setdefault(key.value, (key, value))
            if key.tag == _TAG + "merge":
                merged |= self._of_merge(key, value, path)
        own = {name: pair for name, pair in own.items() if pair[0].tag != _TAG + "merge"}
        self._pairs[id(node)] = merged | own
        return self._pairs[id(node)]

    def _of_merge(self, key: yaml.Node, value: yaml.Node, path: tuple) -> dict[str, tuple[yaml.Node, yaml.Node]]:
        """The pairs of the mapping, or of the list of mappings, of a key `<<`; earlier mappings win."""
        pairs: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        for part in reversed(value.value) if isinstance(value, yaml.SequenceNode) else [value]:
            if not isinstance(part, yaml.MappingNode):
                problem = f"expected a mapping or list of mappings for merging, but found {getattr(part, 'id', part)}"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=part.start_mark)
            if id(part) in self._open:
                self._fail(key.start_mark.line + 1, path, "'<<' merges a mapping into itself; take it out")
                continue
            self._open.add(id(part))
            pairs |= self._merged(part, path)
            self._open.discard(id(part))
        return pairs

    def _fail(self, line: int, path: tuple, what: str) -> None:
        self.errors.append(InputError(what, SourceLocation(self.file, line, dotted(path))))
