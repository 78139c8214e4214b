"""xacro: macros, properties and includes of a robot file, expanded by the package `xacro`.

Elements keep their file and line through the expansion, so that messages name the place in the source.
"""

from __future__ import annotations

import importlib
import io
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from types import TracebackType
from typing import Any
from xml.dom import minidom

from cosim.core.errors import InputError, InputErrors, SourceLocation, did_you_mean
from cosim.core.paths import PACKAGE, read_file
from cosim.core.trust.data_only import XACRO, refuse_code
from cosim.mechanics.multibody.description.diagnostics import Diagnostics
from cosim.mechanics.multibody.description.xmltree import XmlElement, parse_xml

PREFIX = "xacro:"
MACRO = f"{PREFIX}macro"
INCLUDE = f"{PREFIX}include"
INSTALL = "pip install xacro"
_PLACE = "place"  # user data of an element: its SourceLocation
_ARGUMENT = re.compile(r"\$\(arg\s+([\w.-]+)\s*\)")
_EXPRESSION = re.compile(r"\$[{(]")


def uses_xacro(root: XmlElement) -> XmlElement | None:
    """The first element that xacro has to expand; None for a plain file."""
    for element in root.walk():
        if element.tag.startswith(PREFIX) or any(map(_EXPRESSION.search, element.attributes.values())):
            return element
    return None


def expand_xacro(
    root: XmlElement,
    arguments: Mapping[str, str],
    find: Callable[[str], Path],
    diagnostics: Diagnostics,
) -> XmlElement:
    """The file of `root` with everything expanded; warnings become notes.

    arguments: values of its arguments by name; find: the folder of a package by its name, raises InputError.
    Raises InputErrors where the package `xacro` is missing, and for a mistake in one of the files, with its line.
    """
    _refuse(root)
    package = _import(uses_xacro(root) or root)
    known: set[str] = set()
    document = _document(root, known)
    warnings = io.StringIO()
    try:
        with _hooked(package, known, find), redirect_stderr(warnings):
            package.init_stacks(root.file)
            package.process_doc(document, mappings=dict(arguments), verbosity=0)
    except InputErrors:
        raise
    except (Exception, RecursionError) as error:
        raise InputErrors([_located(error, root)]) from None
    for name in arguments:
        if name not in known:
            what = f"there is no xacro argument '{name}' in this file{did_you_mean(name, sorted(known))}"
            raise InputErrors([InputError(what, root.file)])
    for line in warnings.getvalue().splitlines():
        if line.startswith("warning: "):
            diagnostics.note(f"xacro: {line.removeprefix('warning: ')}", root.place)
    return _elements(document.documentElement, root.place)


def _refuse(root: XmlElement) -> None:
    """Raises InputErrors where a file is read as data: xacro evaluates Python expressions."""
    try:
        refuse_code(Path(root.file).name, XACRO, root.place)
    except InputError as error:
        raise InputErrors([error]) from None


def _import(first: XmlElement) -> Any:
    try:
        importlib.import_module("xacro.substitution_args")
        return importlib.import_module("xacro")
    except ImportError:
        what = f"<{first.tag}> is for xacro, which is not installed; {INSTALL}"
        raise InputErrors([InputError(what, first.place)]) from None


@contextmanager
def _hooked(package: Any, known: set[str], find: Callable[[str], Path]) -> Iterator[None]:
    """xacro reads its files and finds its packages with these functions, because its own ones lose the lines and need
    ROS."""

    def parse(_: None, filename: str) -> minidom.Document:
        what = f"no such file '{filename}'"
        try:
            path = Path(filename)
            if PACKAGE in filename:  # xacro puts its own folder before it
                name, *rest = filename.partition(PACKAGE)[2].split("/")
                path = find(name).joinpath(*rest)
                what = f"no such file '{path}'"
            return _document(parse_xml(read_file(path), str(path)), known)
        except InputErrors:
            raise
        except InputError as error:
            what = error.what
        except OSError as error:
            what = what if isinstance(error, FileNotFoundError) else f"'{filename}' cannot be read: {error.strerror}"
        package.filestack.pop()  # as xacro does, for an optional include
        raise package.XacroException(exc=OSError(what))

    def folder(name: str) -> str:
        """A package that is not found is only missed where one of its files is included, not for a mesh."""
        try:
            return str(find(name))
        except InputError:
            return PACKAGE + name

    substitution = package.substitution_args
    before = package.parse, substitution._eval_find, substitution._eval_dict["find"]
    package.parse, substitution._eval_find, substitution._eval_dict["find"] = parse, folder, folder
    try:
        yield
    finally:
        package.parse, substitution._eval_find, substitution._eval_dict["find"] = before


# --- elements to and from the document that xacro works on ---


class _Inherited:
    """A clone of an element has its place."""

    def handle(self, operation: int, key: str, data: Any, src: Any, dst: Any) -> None:
        if dst is not None:
            dst.setUserData(key, data, self)


def _document(root: XmlElement, known: set[str]) -> minidom.Document:
    """known: takes the names of all arguments."""
    document, inherited = minidom.Document(), _Inherited()
    pairs: list[tuple[XmlElement, Any]] = [(root, document)]
    while pairs:
        element, parent = pairs.pop()
        node = document.createElement(element.tag)
        node.setUserData(_PLACE, element.place, inherited)
        for name, value in element.attributes.items():
            node.setAttribute(name, value)
            known.update(_ARGUMENT.findall(value))
        if element.tag == f"{PREFIX}arg":
            known.add(element.attributes.get("name", ""))
            if "default" not in element.attributes and "name" in element.attributes:
                continue  # xacro refuses it even where a value is given; what uses it without one is refused
        if element.text:
            node.appendChild(document.createTextNode(element.text))
        parent.appendChild(node)
        pairs += [(child, node) for child in reversed(element.children)]
    return document


def _elements(node: Any, place: SourceLocation) -> XmlElement:
    """The tree of an expanded document; place: of elements without one."""
    place = node.getUserData(_PLACE) or place
    children = [_elements(child, place) for child in node.childNodes if child.nodeType == child.ELEMENT_NODE]
    text = "".join(child.data for child in node.childNodes if child.nodeType == child.TEXT_NODE).strip()
    return XmlElement(node.tagName, dict(node.attributes.items()), place.line or 0, children, place.file, text)


# --- errors ---


def _located(error: BaseException, root: XmlElement) -> InputError:
    """The error with the innermost element that xacro was working on."""
    node, place = _node(error.__traceback__), root.place
    if node is not None:
        place = node.getUserData(_PLACE)
    for cause in _causes(error):
        if type(cause) is OSError and len(cause.args) == 1:  # from `_hooked`
            return InputError(str(cause), place)
        if type(cause).__name__ == "ArgException":
            name = str(cause)
            given = f"--arg {name}:=VALUE of cosim new, or mechanism.xacro_arguments.{name} of a rig"
            return InputError(f"the xacro argument '{name}' has no value; give {given}", place)
        if isinstance(cause, RecursionError):
            if node is not None and node.tagName == INCLUDE:
                return InputError("files of xacro include one another without end; take one out", place)
            return InputError("a macro of xacro calls itself without end; give it a condition", place)
    tag = "" if node is None else f" <{node.tagName}>"
    return InputError(f"xacro cannot expand{tag}: {' '.join(str(error).split()) or type(error).__name__}", place)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error of xacro and those that it wraps."""
    while error is not None:
        yield error
        error = getattr(error, "exc", None)


def _node(traceback: TracebackType | None) -> Any:
    """The element of the innermost frame that has one with a place."""
    found = None
    while traceback is not None:
        for value in (traceback.tb_frame.f_locals.get(name) for name in ("node", "elt")):
            if isinstance(value, minidom.Element) and value.getUserData(_PLACE) is not None:
                found = value
        traceback = traceback.tb_next
    return found
