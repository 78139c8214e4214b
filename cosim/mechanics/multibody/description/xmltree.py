"""XML as a tree of elements that know their lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from cosim.core.errors import InputError, InputErrors, SourceLocation

ENDS = ("parent", "child")  # of which a joint has one: two do not say which body moves
BLANK = "something blank before <?xml …?>, where XML has nothing"  # a note
_DECLARED = re.compile("\ufeff?([ \\t\\r\\n\ufeff]+)(?=<\\?xml)")
_DECLARED_BYTES = re.compile(rb"(?:\xef\xbb\xbf)?((?:[ \t\r\n]|\xef\xbb\xbf)+)(?=<\?xml)")


@dataclass(slots=True)
class XmlElement:
    """One element: its tag, its attributes, the line its tag starts on, its children in file order, its file, and its
    own character data without spaces around it."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[XmlElement] = field(default_factory=list)
    file: str = ""
    text: str = ""

    @property
    def place(self) -> SourceLocation:
        return SourceLocation(self.file, self.line)

    def walk(self) -> Iterator[XmlElement]:
        """This element and all below it, in file order."""
        stack: list[XmlElement] = [self]
        while stack:
            element = stack.pop()
            yield element
            stack += reversed(element.children)


def _without_blanks(text: str | bytes) -> tuple[int, str | bytes]:
    """(lines taken out, the text) without blanks before its declaration, where XML allows none; a byte order mark stays
    only at the beginning, where it belongs."""
    if isinstance(text, bytes):
        found = _DECLARED_BYTES.match(text)
        return (0, text) if found is None else (found[1].count(b"\n"), text[found.end() :])
    declared = _DECLARED.match(text)
    return (0, text) if declared is None else (declared[1].count("\n"), text[declared.end() :])


def only_child(
    parent: XmlElement, tag: str, error: Callable[[XmlElement, str], None], warn: Callable[[XmlElement, str], None]
) -> XmlElement | None:
    """The first child of this tag, as the parsers of ROS and Gazebo take it, with a warning of more; an error of two
    ends of a joint."""
    found = [element for element in parent.children if element.tag == tag]
    if len(found) > 1:
        what = f"<{parent.tag}> has {len(found)} <{tag}>"
        if tag in ENDS:
            error(found[1], f"{what}; keep one")
        else:
            warn(found[1], f"{what}; the first one is taken, keep one")
    return found[0] if found else None


def written_numbers(text: str) -> list[float]:
    """The numbers between the spaces of a text; none where a word is no number."""
    try:
        # float() accepts 1_000 and digits of other scripts
        return [float(word) for word in text.split() if word.isascii() and "_" not in word]
    except ValueError:
        return []


def begins_blank(text: str | bytes) -> bool:
    """Whether there is something blank before the declaration."""
    return _without_blanks(text)[1] is not text


def parse_xml(text: str | bytes, file: str) -> XmlElement:
    """The root element of `text`; comments are dropped, and so is what is blank before the declaration.

    Raises InputErrors, with one mistake that has its line, when the text is not well-formed XML, or names another file
    as an entity, which no reader opens.
    """
    parser = expat.ParserCreate()
    document = XmlElement("", {}, 0)
    open_elements = [document]
    before, text = _without_blanks(text)

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = XmlElement(tag, attributes, before + parser.CurrentLineNumber, file=file)
        open_elements[-1].children.append(element)
        open_elements.append(element)

    def end(tag: str) -> None:
        element = open_elements.pop()
        element.text = element.text.strip()

    def data(text: str) -> None:
        open_elements[-1].text += text

    def entity(name: str, _: int, value: str | None, *where: str | None) -> None:
        if value is None:
            what = f"the entity '{name}' is in another file, which is not opened; write out what it stands for"
            raise InputErrors([InputError(what, SourceLocation(file, parser.CurrentLineNumber))])

    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = data
    parser.EntityDeclHandler = entity
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        inside = open_elements[-1]
        where = f", inside <{inside.tag}> of line {inside.line}" if inside.tag else ""
        what = f"not well-formed XML: {expat.ErrorString(error.code)}{where}"
        raise InputErrors([InputError(what, SourceLocation(file, before + error.lineno))]) from None
    except (ValueError, LookupError) as error:  # an encoding that is unknown or does not fit
        raise InputErrors([InputError(f"not readable as XML: {error}", SourceLocation(file, 1))]) from None
    return document.children[0]
