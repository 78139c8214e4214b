"""Reads XDD and XDC files (CiA 311) and ESI files (ETG.2000): XML without a document type, whose size is bounded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.parsers import expat

from cosim.core.errors import shortened
from cosim.plugins.drivers.cia402.data_sheet.sheet import (
    LONGEST_TEXT,
    TYPE_BITS,
    Entry,
    Sheet,
    fail,
    identity_of,
    number,
    unread,
)

MOST_ELEMENTS, MOST_LEVELS = 500_000, 64
_ACCESS = {"ro": "ro", "rw": "rw", "wo": "wo", "const": "const"}
_MAPPED = {"TPDO": "t", "RPDO": "r", "default": "rt", "optional": "rt"}
_ESI_TYPES = {
    **{"BOOL": 1, "SINT": 8, "USINT": 8, "BYTE": 8, "INT": 16, "UINT": 16, "WORD": 16, "DINT": 32, "UDINT": 32},
    **{"DWORD": 32, "REAL": 32, "LINT": 64, "ULINT": 64, "LREAL": 64},
}


_SIGNED = ("SINT", "INT", "DINT", "LINT")
_WHOLE = _ESI_TYPES.keys() - {"REAL", "LREAL"}


class SheetElement:
    """An element, without the prefix of its name."""

    def __init__(self, tag: str, attributes: dict[str, str], line: int) -> None:
        self.tag, self.attributes, self.line = tag, attributes, line
        self.children: list[SheetElement] = []
        self.text = ""

    def find(self, path: str) -> SheetElement | None:
        """The first element at a path of tags."""
        return next(self.all(path), None)

    def all(self, path: str) -> Iterator[SheetElement]:
        head, _, rest = path.partition("/")
        for child in self.children:
            if child.tag == head:
                yield from child.all(rest) if rest else (child,)

    def words(self, path: str) -> str:
        found = self.find(path)
        return "" if found is None else found.text.strip()


def read(path: Path, data: bytes) -> list[Sheet]:
    """The drives of a file. Raises InputError with file and line."""
    root = _parse(path, data)
    if root.tag == "ISO15745ProfileContainer":
        return [_device_description(path, root)]
    if root.tag == "EtherCATInfo":
        return list(_slaves(path, root))
    what = f"is XML with the root '{root.tag[:LONGEST_TEXT]}'; give an XDD or XDC of CiA 311, or an ESI of EtherCAT"
    raise fail(path, root.line, "", what)


def _parse(path: Path, data: bytes) -> SheetElement:
    """Raises InputError for what is not well-formed, for a document type and for what is too large or too deep."""
    parser, stack, top = expat.ParserCreate(), [], SheetElement("", {}, 1)
    count = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if count > MOST_ELEMENTS or len(stack) > MOST_LEVELS:
            raise fail(path, parser.CurrentLineNumber, "", "is larger or deeper than any data sheet of a drive")
        own = {name.rpartition(":")[2]: value for name, value in attributes.items()}
        element = SheetElement(tag.rpartition(":")[2], own, parser.CurrentLineNumber)
        (stack[-1] if stack else top).children.append(element)
        stack.append(element)

    def words(text: str) -> None:
        if stack and len(stack[-1].text) < LONGEST_TEXT:
            stack[-1].text += text[:LONGEST_TEXT]

    def declares(*_: object) -> None:
        raise fail(path, parser.CurrentLineNumber, "", "has a document type, which is not read; take <!DOCTYPE> out")

    parser.StartElementHandler, parser.EndElementHandler = start, lambda tag: stack.pop()
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = words, declares
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        what = f"not well-formed XML: {expat.ErrorString(error.code)}"
        raise fail(path, error.lineno, "", what) from None
    return top.children[0]


def _value(text: str) -> int | None:
    """A number as 10, 0x0A or #x0A; None for others."""
    words = text.strip().replace("#x", "0x").replace("#X", "0x")
    if len(words) > LONGEST_TEXT:
        return None
    try:
        return int(words, 0) if not words.lstrip("+-0").isdigit() else int(words)
    except ValueError:
        return 0 if words and not words.strip("0") else None


# --- CiA 311 ------------------------------------------------------------------------------------------


def _device_description(path: Path, root: SheetElement) -> Sheet:
    identity = next(_below(root, "DeviceIdentity"), None)
    entries: dict[int, Entry] = {}
    for thing in _below(root, "CANopenObject"):
        index = _hexadecimal(path, thing, "index", 0xFFFF)
        if "dataType" in thing.attributes:
            entries[index << 8] = _described(path, thing)
        for part in thing.all("CANopenSubObject"):
            entries[index << 8 | _hexadecimal(path, part, "subIndex", 0xFF)] = _described(path, part)
    if not entries:
        raise fail(path, root.line, "", "has no objects of CANopen (CANopenObjectList)")
    configured = any("actualValue" in each.attributes for each in _below(root, "CANopenObject"))
    configured = configured or any("actualValue" in each.attributes for each in _below(root, "CANopenSubObject"))
    name, vendor, product = "", None, None
    if identity is not None:
        name, vendor = identity.words("productName"), _value(identity.words("vendorID"))
        product = _value(identity.words("productID"))
    vendor, product = identity_of(vendor, product, entries)
    return Sheet(path, "XDC" if configured else "XDD", name or path.stem, vendor, product, entries, {}, False)


def _below(element: SheetElement, tag: str) -> Iterator[SheetElement]:
    for child in element.children:
        if child.tag == tag:
            yield child
        else:
            yield from _below(child, tag)


def _hexadecimal(path: Path, element: SheetElement, name: str, most: int) -> int:
    text = element.attributes.get(name, "")
    try:
        value = int(text, 16)
    except ValueError:
        value = -1
    if not 0 <= value <= most or len(text) > 6:
        what = f"'{text[:LONGEST_TEXT]}' is no {name} in hexadecimal digits"
        raise fail(path, element.line, f"{element.tag} {name}", what)
    return value


def _described(path: Path, element: SheetElement) -> Entry:
    given = element.attributes
    access = given.get("accessType", "")
    if access and access not in _ACCESS:
        what = f"'{access[:LONGEST_TEXT]}' is none of {', '.join(_ACCESS)}"
        raise fail(path, element.line, f"{element.tag} accessType", what)
    kind = _hexadecimal(path, element, "dataType", 0xFFFF) if "dataType" in given else 0
    text = given.get("actualValue", given.get("defaultValue", ""))
    value = number(text) if "$" in text else _value(text)  # $NODEID+…, as in an EDS
    return Entry(
        given.get("name", ""),
        TYPE_BITS.get(kind),
        access,
        value,
        _MAPPED.get(given.get("PDOmapping", ""), ""),
        _value(given.get("lowLimit", "")),
        _value(given.get("highLimit", "")),
        element.line,
        unread(text, value, kind),
    )


# --- ESI ----------------------------------------------------------------------------------------------


def _slaves(path: Path, root: SheetElement) -> Iterator[Sheet]:
    vendor = _value(root.words("Vendor/Id"))
    devices = list(root.all("Descriptions/Devices/Device"))
    if not devices:
        raise fail(path, root.line, "", "describes no device (Descriptions/Devices/Device)")
    for device in devices:
        kind = device.find("Type")
        product = None if kind is None else _value(kind.attributes.get("ProductCode", ""))
        name = device.words("Name") or ("" if kind is None else kind.text.strip()) or path.stem
        maps = {}
        for tag in ("RxPdo", "TxPdo"):
            for pdo in device.all(tag):
                index, fixed = _value(pdo.words("Index")), pdo.attributes.get("Fixed", "0") in ("1", "true")
                if index is None:
                    raise fail(path, pdo.line, f"{tag} Index", "is no number, such as #x1600")
                maps[index] = tuple(_mapped(entry) for entry in pdo.all("Entry")), fixed
        yield Sheet(path, "ESI", name, vendor, product, _dictionary(device), maps, True)


def _mapped(entry: SheetElement) -> int:
    index, sub, bits = (_value(entry.words(tag)) or 0 for tag in ("Index", "SubIndex", "BitLen"))
    return (index & 0xFFFF) << 16 | (sub & 0xFF) << 8 | bits & 0xFF


def _dictionary(device: SheetElement) -> dict[int, Entry]:
    """The objects of the offline dictionary, which an ESI need not have."""
    types = {kind.words("Name"): kind for kind in device.all("Profile/Dictionary/DataTypes/DataType")}
    entries: dict[int, Entry] = {}
    for thing in device.all("Profile/Dictionary/Objects/Object"):
        index = _value(thing.words("Index"))
        if index is None or not 0 <= index <= 0xFFFF:
            continue
        kind, values = types.get(thing.words("Type")), list(thing.all("Info/SubItem"))
        parts = [] if kind is None else list(kind.all("SubItem"))
        if not parts:
            entries[index << 8] = _slave_entry(thing, thing)
        for place, part in enumerate(parts):
            sub = _value(part.words("SubIdx"))
            own = values[place] if place < len(values) else thing
            if sub is not None and 0 <= sub <= 0xFF:
                entries[index << 8 | sub] = _slave_entry(part, own)
    return entries


def _slave_entry(about: SheetElement, values: SheetElement) -> Entry:
    mapping = about.words("Flags/PdoMapping").lower()
    data = values.words("Info/DefaultData") or values.words("Info/DefaultValue")
    raw, kind = values.find("Info/DefaultData") is not None, about.words("Type")
    value = _little_endian(data, kind in _SIGNED) if raw else _value(data)
    return Entry(
        about.words("Name"),
        _ESI_TYPES.get(kind) or _value(about.words("BitSize")),
        {"ro": "ro", "rw": "rw", "wo": "wo"}.get(about.words("Flags/Access").lower(), ""),
        value,
        "".join(letter for letter in "rt" if letter in mapping),
        _value(values.words("Info/MinValue")),
        _value(values.words("Info/MaxValue")),
        about.line,
        shortened(data) if value is None and kind in _WHOLE else "",
    )


def _little_endian(text: str, signed: bool) -> int | None:
    """The number in the bytes of DefaultData."""
    try:
        data = bytes.fromhex(text)
    except ValueError:
        return None
    return int.from_bytes(data, "little", signed=signed) if 0 < len(data) <= 8 else None
