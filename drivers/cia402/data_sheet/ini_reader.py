"""Reads EDS and DCF files (CiA 306): sections of `key=value`, each object and each sub-index a section.

A small reader with line numbers, which the standard library lacks. Files are in UTF-8, in UTF-16 or in
Windows-1252.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from cosim.plugins.drivers.cia402.data_sheet.sheet import (
    TYPE_BITS,
    Entry,
    Sheet,
    fail,
    identity_of,
    number,
    unread,
    utf_16,
)

_OBJECT = re.compile(r"([0-9A-F]{1,4})(?:SUB([0-9A-F]{1,2}))?", re.IGNORECASE)
_ACCESS = {"ro": "ro", "rw": "rw", "wo": "wo", "const": "const", "rwr": "rw", "rww": "rw"}
_COMMISSIONING = ("DEVICECOMISSIONING", "DEVICECOMMISSIONING")  # as CiA 306 spells it, and as some tools do
_MAPPED = {"ro": "t", "rwr": "t", "wo": "r", "rww": "r", "rw": "rt", "const": "t"}


class _Value(NamedTuple):
    text: str
    line: int


_Section = dict[str, _Value]


def read(path: Path, data: bytes) -> Sheet:
    """Raises InputError with file, line and section."""
    sections = _sections(path, _text(path, data))
    about = sections.get("DEVICEINFO", {})
    if not about:
        raise fail(path, None, "", "has no section [DeviceInfo]; give an EDS or a DCF of CiA 306")
    commissioned = next((sections[name] for name in _COMMISSIONING if name in sections), None)
    node = _plain(commissioned or {}, "NODEID") or 0
    entries: dict[int, Entry] = {}
    for name, section in sections.items():
        found = _OBJECT.fullmatch(name)
        if found is not None and section:
            key = int(found[1], 16) << 8 | int(found[2] or "0", 16)
            if entry := _entry(path, name, section, node):
                entries[key] = entry
            entries |= _compact(path, key, name, sections, node)
    configured = commissioned is not None or any("PARAMETERVALUE" in section for section in sections.values())
    return Sheet(
        path,
        "DCF" if configured else "EDS",
        (about["PRODUCTNAME"].text if "PRODUCTNAME" in about else "") or path.stem,
        *identity_of(_plain(about, "VENDORNUMBER"), _plain(about, "PRODUCTNUMBER"), entries),
        entries,
        {},
        False,
    )


def _text(path: Path, data: bytes) -> str:
    """Raises InputError for what is no text."""
    if code := utf_16(data):
        text = data.decode(code, "replace")
    else:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = data.decode("cp1252", "replace")
    if "\0" in text:
        raise fail(path, None, "", "is no text: it has characters with the code 0; give an EDS or a DCF as text")
    return text


def _sections(path: Path, text: str) -> dict[str, _Section]:
    """Upper-case name -> upper-case key -> value. Raises InputError."""
    sections: dict[str, _Section] = {}
    section: _Section | None = None
    name = ""
    for line, raw in enumerate(text.splitlines(), 1):
        words = raw.strip()
        if not words or words[0] in ";#":
            continue
        if words[0] == "[":
            name = words[1:].partition("]")[0].strip()
            if "]" not in words or not name:
                raise fail(path, line, "", "expected a section as [1000]")
            if name.upper() in sections:
                raise fail(path, line, f"[{name}]", "the section exists already; take one of them out")
            section = sections[name.upper()] = {}
            continue
        key, equals, value = words.partition("=")
        if not equals or section is None:
            raise fail(path, line, f"[{name}]" if name else "", "expected key=value in a section, as an EDS has it")
        if key.strip().upper() in section:
            raise fail(path, line, f"[{name}] {key.strip()}", "the key exists already; take one of them out")
        section[key.strip().upper()] = _Value(value.strip(), line)
    return sections


def _plain(section: _Section, key: str) -> int | None:
    return number(section[key].text) if key in section else None


def _entry(path: Path, name: str, section: _Section, node: int) -> Entry | None:
    """Raises InputError for an unknown data type or access; None for a record, which has only sub-indices."""
    if "DATATYPE" not in section:
        return None
    kind = section["DATATYPE"]
    code = number(kind.text)
    if code is None:
        raise fail(path, kind.line, f"[{name}] DataType", f"'{kind.text}' is no data type of CiA 301, such as 0x0007")
    access = section.get("ACCESSTYPE", _Value("", kind.line))
    if access.text and access.text.lower() not in _ACCESS:
        known = ", ".join(_ACCESS)
        raise fail(path, access.line, f"[{name}] AccessType", f"'{access.text}' is none of {known}")
    mapped = _plain(section, "PDOMAPPING") == 1
    value = section.get("PARAMETERVALUE") or section.get("DEFAULTVALUE")
    text = "" if value is None else value.text
    found = number(text, node) if text else None
    return Entry(
        section["PARAMETERNAME"].text if "PARAMETERNAME" in section else "",
        TYPE_BITS.get(code),
        _ACCESS.get(access.text.lower(), ""),
        found,
        _MAPPED.get(access.text.lower(), "") if mapped else "",
        _plain(section, "LOWLIMIT"),
        _plain(section, "HIGHLIMIT"),
        kind.line if value is None else value.line,
        unread(text, found, code),
    )


def _compact(path: Path, key: int, name: str, sections: dict[str, _Section], node: int) -> dict[int, Entry]:
    """The sub-indices of an array in the short form: `CompactSubObj`, with values in a section of their own."""
    section = sections[name]
    count = _plain(section, "COMPACTSUBOBJ")
    if not count or not 0 < count < 255 or "DATATYPE" not in section:
        return {}
    entry = _entry(path, name, section, node)
    assert entry is not None
    values = sections.get(f"{name}VALUE", {})
    found = {key: Entry("number of entries", 8, "ro", count, "", None, None, entry.line)}
    for sub in range(1, count + 1):
        own = values.get(str(sub))
        if own is None:
            found[key | sub] = entry
        else:
            value = number(own.text, node)
            wrong = unread(own.text, value, _plain(section, "DATATYPE"))
            found[key | sub] = entry._replace(value=value, line=own.line, unread=wrong)
    return found
