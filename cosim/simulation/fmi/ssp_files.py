"""Files of SSP (System Structure and Parameterization 1.0, 2.0): archives, elements with lines, sources, and
parameters: values (`.ssv`, or inline) that are bound to systems and components, with mappings (`.ssm`).
"""

from __future__ import annotations

import shutil
import weakref
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from urllib.parse import unquote, urlsplit

from cosim.core.errors import InputError, did_you_mean, shortened
from cosim.core.paths import EXTRACTED, files_below, irregular, read_file
from cosim.core.trust.data_only import FMU, refuse_code
from cosim.core.trust.unpacking import open_zip, unpack_zip
from cosim.mechanics.multibody.description.xmltree import XmlElement, parse_xml
from cosim.simulation.fmi.unit_conversion import conversion_of
from cosim.simulation.fmi.variables import REAL, InUnit, InUnitOfFmu

STRUCTURE = "SystemStructure.ssd"
VERSIONS = ("1.", "2.")


def kind_of(element: XmlElement) -> str:
    """The name of an element without the prefix of its namespace."""
    return element.tag.rpartition(":")[2]


def children(element: XmlElement | None, *way: str) -> Iterator[XmlElement]:
    """The elements at the end of a way of names."""
    if element is None:
        return
    for child in element.children:
        if kind_of(child) == way[0]:
            if len(way) == 1:
                yield child
            else:
                yield from children(child, *way[1:])


def child(element: XmlElement | None, *way: str) -> XmlElement | None:
    """The first of `children`."""
    return next(children(element, *way), None)


def attribute(element: XmlElement, name: str) -> str:
    """Raises InputError without it."""
    if name not in element.attributes:
        raise InputError(f"<{kind_of(element)}> has no attribute '{name}'; add it", element.place)
    return element.attributes[name]


def number(element: XmlElement, name: str, default: float) -> float:
    text = element.attributes.get(name)
    if text is None:
        return default
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{name}: expected a number, got '{shortened(text)}'", element.place) from None


@dataclass(frozen=True)
class SspFolder:
    """The folder of a system: extracted from an archive, or with a `.ssd` file. shown: its name in messages; root:
    what an archive may not leave."""

    path: Path
    shown: str
    root: Path | None = None

    def read(self, file: Path, expected: str) -> XmlElement:
        """The root element of a file. Raises InputError for an invalid one, or one that has another root element."""
        shown = self.name(file)
        try:
            text = read_file(file)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", shown) from None
        root = parse_xml(text, shown)
        if kind_of(root) != expected:
            raise InputError(f"expected the element <{expected}>, got <{shortened(root.tag)}>", root.place)
        return root

    def name(self, file: Path) -> str:
        """A file in messages."""
        return f"{self.shown}/{file.relative_to(self.path).as_posix()}" if self.root else str(file)

    def locate(self, element: XmlElement) -> Path:
        """The file that the attribute `source` of an element names. Raises InputError where there is none."""
        source = attribute(element, "source")
        parts = urlsplit(source)
        if element.attributes.get("sourceBase", "SSD") != "SSD":
            raise InputError("sourceBase is not 'SSD'; use a source that is relative to the .ssd file", element.place)
        if parts.scheme not in ("", "file") or parts.netloc:
            raise InputError(f"source '{shortened(source)}' is no file; put it beside the .ssd file", element.place)
        path = self.path / unquote(parts.path)
        if self.root and not path.resolve().is_relative_to(self.root.resolve()):
            raise InputError(f"source '{shortened(source)}' is outside of the archive; put it inside", element.place)
        if not path.is_file():
            near, _ = files_below(self.path, (path.suffix,))
            raise InputError(f"there is no file '{shortened(source)}'{did_you_mean(source, near)}", element.place)
        return path


def open_folder(path: Path) -> tuple[SspFolder, Path, weakref.finalize | None]:
    """(folder, the `.ssd` file in it, what removes the folder of an extracted archive). Raises InputError."""
    refuse_code(path.name, FMU, str(path))
    if kind := irregular(path):
        raise InputError(f"is {kind}; give an .ssp or .ssd file", str(path))
    if not path.exists():
        near = sorted(file.name for file in path.parent.glob("*") if file.suffix in (".ssp", ".ssd"))
        raise InputError(f"no such file{did_you_mean(path.name, near)}", str(path))
    if not zipfile.is_zipfile(path):
        if path.suffix == ".ssp":
            raise InputError("no zip archive; an .ssp file is one: export or copy it again", str(path))
        return SspFolder(path.parent, path.name), path, None
    target = Path(mkdtemp(prefix=EXTRACTED))
    folder = SspFolder(target, str(path), target)
    remove = weakref.finalize(folder, shutil.rmtree, target, ignore_errors=True)
    try:
        with open_zip(path, str(path), "an .ssp file") as archive:
            if STRUCTURE not in archive.namelist():
                raise InputError(f"has no {STRUCTURE}; an .ssp file has it at the top of its archive", str(path))
        unpack_zip(path, target, str(path))
    except BaseException:
        remove()
        raise
    return folder, target / STRUCTURE, remove


BASE = ("kg", "m", "s", "A", "K", "mol", "cd", "rad", "factor", "offset")
BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
Values = dict[str, Any]


def units_of(root: XmlElement) -> dict[str, dict[str, float] | None]:
    """The definitions of units in a file: exponents of base units, factor and offset by name."""
    definitions: dict[str, dict[str, float] | None] = {}
    for unit in children(root, "Units", "Unit"):
        base = child(unit, "BaseUnit")
        defaults = {name: float(name == "factor") for name in BASE}
        definitions[attribute(unit, "name")] = base and {k: number(base, k, x) for k, x in defaults.items()}
    return definitions


def bound_values(folder: SspFolder, owner: XmlElement) -> Values:
    """The parameters that the bindings of a system or component give, by name; later bindings replace earlier ones."""
    values: Values = {}
    for binding in children(owner, "ParameterBindings", "ParameterBinding"):
        values |= _binding(folder, binding)
    return values


def _binding(folder: SspFolder, binding: XmlElement) -> Values:
    inline = child(binding, "ParameterValues", "ParameterSet")
    root = inline or folder.read(folder.locate(binding), "ParameterSet")
    units, prefix = units_of(root), binding.attributes.get("prefix", "")
    given = {
        prefix + attribute(parameter, "name"): _typed(parameter)
        for parameter in children(root, "Parameters", "Parameter")
    }
    mapping = child(binding, "ParameterMapping")
    if mapping is None:
        return {name: _value(value, units) for name, value in given.items()}
    entries = child(mapping, "ParameterMapping") or folder.read(folder.locate(mapping), "ParameterMapping")
    return dict(_mapped(entries, given, units))


def _typed(parameter: XmlElement) -> XmlElement:
    """The element with the type and the value."""
    if not parameter.children:
        raise InputError("<Parameter> has no value; add an element such as <Real value=…/>", parameter.place)
    return parameter.children[0]


def _mapped(entries: XmlElement, given: dict[str, XmlElement], units: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """(target, value) of the entries of a mapping."""
    for entry in children(entries, "MappingEntry"):
        source, target = attribute(entry, "source"), attribute(entry, "target")
        if not source:  # of a template: nothing is mapped yet
            continue
        if source not in given:
            raise InputError(f"there is no parameter '{shortened(source)}'{did_you_mean(source, given)}", entry.place)
        factor, offset = transformation(entry)
        yield target, _value(given[source], units, factor, offset)


def transformation(element: XmlElement) -> tuple[float, float]:
    """(factor, offset) of an element with a transformation. Raises InputError for one that is not linear."""
    for each in element.children:
        if kind_of(each) == "LinearTransformation":
            return number(each, "factor", 1.0), number(each, "offset", 0.0)
        if kind_of(each).endswith("Transformation"):
            raise InputError(f"<{kind_of(each)}> is not read; only LinearTransformation is", each.place)
    return 1.0, 0.0


def _value(typed: XmlElement, units: dict[str, Any], factor: float = 1.0, offset: float = 0.0) -> Any:
    """A value for `FmuPart`, in its unit, else in the FMU's."""
    kind, text = kind_of(typed), attribute(typed, "value")
    if kind in ("String", "Enumeration"):
        return text
    if kind == "Boolean":
        if text not in BOOLEANS:
            raise InputError(f"value: expected true or false, got '{shortened(text)}'", typed.place)
        return BOOLEANS[text]
    if kind not in REAL and not kind.removeprefix("U").startswith("Int"):
        raise InputError(f"<{kind}> is no type of a parameter that is read", typed.place)
    try:
        numbers = [factor * (float(x) if kind in REAL else int(x)) + offset for x in text.split()]
    except ValueError:
        raise InputError(f"value: expected a number, got '{shortened(text)}'", typed.place) from None
    value: Any = numbers[0] if len(numbers) == 1 else numbers
    unit = typed.attributes.get("unit")
    return InUnit(value, conversion_of(unit, units.get(unit))) if unit else InUnitOfFmu(value)
