"""YAML with locations: a rig file, the line of every key and element, and overrides of its values: by `--set`, or by an
overlay, a YAML file whose keys are paths with dots."""

from __future__ import annotations

import copy
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import yaml

from cosim.core.errors import InputError, InputErrors, SourceLocation, did_you_mean
from cosim.core.paths import irregular, read_file
from cosim.rig.reading.yaml_values import YamlValue, dotted, parse

MOST_BYTES = 1_000_000  # bytes of a rig file
_PART = r"[^.\[\]\s](?:[^.\[\]\n]*[^.\[\]\s])?"  # names may have blanks inside
_ELEMENT = r"\[([^\[\]\n]+)\]"  # a name in brackets, which may have dots
_KEY = rf"{_PART}(?:\.{_PART}|{_ELEMENT})*"
Override = str | tuple[str, str]  # `key=value`, or it and the place or option that messages name
_BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")  # of UTF-16


@dataclass(frozen=True)
class YamlSource:
    """A YAML file: its text, its plain data, and for each path its line, or the option that it came from."""

    file: str
    text: str
    data: dict[str, YamlValue]
    marks: dict[tuple, int | str]

    def place(self, path: tuple) -> SourceLocation:
        """The location of the key or element at `path`; of an absent one, with the line of its nearest parent."""
        mark = next((self.marks[path[:k]] for k in range(len(path), -1, -1) if path[:k] in self.marks), None)
        if isinstance(mark, str):
            return SourceLocation(mark)
        return SourceLocation(self.file, mark, dotted(path))


def load_yaml(path: str | Path, least: str = "a 'mechanism'") -> YamlSource:
    """Read a YAML file whose top level is a mapping. least: what it must have, for the message of an empty one.

    Raises InputError for a file that is missing, too large, empty or not YAML, InputErrors for duplicate keys.
    """
    file = str(path)
    text = _text(Path(path))
    data, marks = parse(text, file)
    if data is None:
        raise InputError(f"the file is empty; it needs at least {least}", SourceLocation(file))
    if not isinstance(data, dict):
        place = YamlSource(file, text, {}, marks).place(())
        raise InputError("expected 'key: value' lines at the top level", place)
    return YamlSource(file, text, data, marks)


def source_of(data: Mapping[str, Any], folder: str | Path) -> YamlSource:
    """The source of a mapping in Python, as of a file of this folder. Arrays and tuples become lists.

    Raises InputError for values that a file cannot have.
    """
    import yaml

    file = str(Path(folder) / "<dict>")
    plain = {"name": "rig", **_plain(data)}
    try:
        text = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True)
    except yaml.YAMLError as error:
        what = f"cannot be written as YAML: {error.args[0]} {error.args[-1]!r}; use numbers, text, lists and mappings"
        raise InputError(what, SourceLocation(file)) from None
    return YamlSource(file, text, plain, {})


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Path):
        return str(value)
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def override(
    source: YamlSource, text: str, option: str = "", named: Mapping[tuple, Container[str]] = MappingProxyType({})
) -> YamlSource:
    """`source` with one value replaced according to `text`, such as `controllers.arm.kp=200`.

    option: the option of the command line that messages name, by default `--set` with the text; named: the path of a
    section by names that the file need not have -> keys of its elements.

    An element of a list is named by its index or its `name` (a controller without a name by its `type`). A name with
    dots is the longest that the section has, or ends before a key of its elements; brackets make it clear. Missing
    sections are created. The value is YAML. Raises InputError for a text that is not `key=value`, for an element that
    does not exist, and for a key of a value that is not a mapping.
    """
    option = option or f"--set {text}"
    place = SourceLocation(option)
    key, equals, value_text = text.partition("=")
    words = [(element or word, bool(element)) for element, word in re.findall(rf"{_ELEMENT}|({_PART})", key)]
    if not equals or not re.fullmatch(_KEY, key.strip()):
        raise InputError("expected key=value, for example schedule.step=2ms", place)
    value = read_value(value_text, place)
    data = copy.deepcopy(source.data)
    parent: YamlValue = data
    path: tuple = ()
    created: list[tuple] = []
    while words:
        known = _children(parent)
        count = _words_of_name(words, known, named.get(path, ()))
        part, words = ".".join(word for word, _ in words[:count]), words[count:]
        last = not words
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
    return YamlSource(source.file, source.text, data, {**marks, **dict.fromkeys([*created, path], option)})


def _words_of_name(words: Sequence[tuple[str, bool]], known: Container[str], keys: Container[str]) -> int:
    """How many words, which dots separate, are the first name: the longest that is known, of a section of names with
    one of its keys behind it if possible. words: each with whether it stands in brackets, which is a name by itself."""
    run = next((n for n, (_, apart) in enumerate(words) if apart), len(words)) or 1
    longest = [n for n in range(run, 0, -1) if ".".join(word for word, _ in words[:n]) in known]
    before_key = [n for n in range(1, run) if words[n][0] in keys]
    return next((n for n in longest if n == run or n in before_key), next(iter([*before_key, *longest]), 1))


def read_value(text: str, place: SourceLocation) -> YamlValue:
    """The plain data of a YAML value of the command line. Raises InputError with the location `place`."""
    try:
        return parse(text, str(place))[0]
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


def _instead_of(path: Path) -> str:
    """The fix for a file that does not exist: a similar name in its folder, if there is one."""
    near = {file.stem: file.name for file in sorted(path.parent.glob("*")) if file.suffix == path.suffix}
    similar = get_close_matches(path.stem, near, n=1)
    return f"did you mean '{near[similar[0]]}'?" if similar else "check the path"


def _text(path: Path) -> str:
    """The text of a file. Raises InputError, without opening what is no file and might never end."""
    place = SourceLocation(str(path))
    try:
        if kind := irregular(path):
            raise InputError(f"is {kind}; give the file of a rig", place)
        if (length := path.stat().st_size) > MOST_BYTES:
            size = f"{length / 1e6:.3g} MB"
            what = f"the file has {size}, a rig has at most {MOST_BYTES / 1e6:.3g} MB"
            raise InputError(f"{what}; use `repeat`, the joint `all` or a URDF", place)
        data = read_file(path)
    except FileNotFoundError:
        raise InputError(f"no such file; {_instead_of(path)}", place) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", place) from None
    if data.startswith(_BYTE_ORDER_MARKS):
        raise InputError("is UTF-16 text; save it as UTF-8", place)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        what = "is not UTF-8 text; give the file of a rig, or save it as UTF-8"
        raise InputError(what, SourceLocation(str(path), line)) from None
    if text.lstrip().startswith("<"):
        what = "is XML, not YAML; a rig names its robot with `mechanism: {urdf: robot.urdf}`"
        raise InputError(what, SourceLocation(str(path), 1))
    return text


def read_overlay(path: str | Path) -> list[Override]:
    """The overrides of a file in its order, each with its line. Raises InputError for an invalid file."""
    return overrides_in(load_yaml(path, least="one value"))


def overrides_in(source: YamlSource, but: str = "") -> list[Override]:
    """The overrides of a file that was read; but: a key that is no override."""
    items = ((key, value) for key, value in source.data.items() if key != but)
    return [(f"{key}={_flow(value)}", str(source.place((key,)))) for key, value in items]


def overlays_of(overrides: Iterable[Override]) -> Iterator[Path]:
    """The files that overrides were read from."""
    for text, place in (each for each in overrides if not isinstance(each, str)):
        line = place.removesuffix(f" {text.partition('=')[0]}")
        if file := line.rpartition(":")[0]:  # none in the place of an option
            yield Path(file)


def overrides_of(values: Mapping[str, object]) -> list[Override]:
    """The same values without a file."""
    return [f"{key}={_flow(value)}" for key, value in values.items()]


def overlay_text(values: Mapping[str, object], rig: str) -> str:
    """The file with these values; rig: the file that they are for."""
    lines = [f"{_flow(key)}: {_flow(value)}\n" for key, value in values.items()]
    return f"# cosim run {' '.join(rig.split())} --overlay THIS_FILE\n" + "".join(lines)


def _flow(value: object) -> str:
    """In one line. YAML ends a lone scalar with a line of dots."""
    text = yaml.safe_dump(value, default_flow_style=True, width=10**6, allow_unicode=True)
    return text.removesuffix("...\n").strip()
