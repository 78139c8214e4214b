"""XML as a tree of elements that know their lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from cosim.core.errors import InputError, InputErrors, SourceLocation


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


def parse_xml(text: str | bytes, file: str) -> XmlElement:
    """The root element of `text`; comments are dropped.

    Raises InputErrors, with one mistake that has its line, when the text is not well-formed XML, or names another file
    as an entity, which no reader opens.
    """
    parser = expat.ParserCreate()
    document = XmlElement("", {}, 0)
    open_elements = [document]

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = XmlElement(tag, attributes, parser.CurrentLineNumber, file=file)
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
        raise InputErrors([InputError(what, SourceLocation(file, error.lineno))]) from None
    except (ValueError, LookupError) as error:  # an encoding that is unknown or does not fit
        raise InputErrors([InputError(f"not readable as XML: {error}", SourceLocation(file, 1))]) from None
    return document.children[0]
