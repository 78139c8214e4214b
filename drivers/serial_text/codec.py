"""Lines of text, and the patterns that a rig gives for them: `P{id} {position:.4f}`, with named fields as in `format`.

A pattern works in both directions. A blank in it stands for one or more; a field is a number, a whole number or a word.
The checksum is that of NMEA 0183: an asterisk and the exclusive or of all bytes before it, two hexadecimal digits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from operator import xor
from string import Formatter

from cosim.errors import did_you_mean

MAX_LINE = 256  # bytes
_NUMBER = r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|nan|[-+]?inf"
_NUMBERS = ("position", "velocity", "effort", "temperature", "watchdog", "effort_limit", "max_effort", "max_velocity")
# field -> (pattern, its value, format by default, a value for trying formats)
FIELDS: dict[str, tuple[str, Callable[[str], float | str], str, float | str]] = {
    **{name: (_NUMBER, float, ".7g", -1234.5678) for name in _NUMBERS},
    **{name: ("[0-9]{1,9}", int, "d", 10) for name in ("id", "fault")},
    **{name: (r"[!-)+-~]+", str, "s", "a") for name in ("mode", "model")},
}


class Pattern:
    """A pattern of a line of text. fields: in their order, with their formats."""

    def __init__(self, text: str) -> None:
        """Raises ValueError for a wrong pattern."""
        if not text.isprintable() or not text.isascii():
            raise ValueError("a line of text has printable ASCII characters only")
        try:
            parts = list(Formatter().parse(text.strip()))
        except ValueError as error:
            raise ValueError(f"{error}; write a field as {{position}} and a brace as two") from None
        self.fields: dict[str, str] = {}
        self._parts: list[str | tuple[str, str]] = []
        expression = ""
        for literal, name, spec, conversion in parts:
            self._parts.append(literal)
            expression += r"[ \t]+".join(map(re.escape, re.split(r"[ \t]+", literal)))
            if name is None:
                continue
            _check_field(name, spec or "", conversion)
            if name in self.fields:
                raise ValueError(f"field '{name}' occurs twice; take one out")
            if self.fields and not literal:
                raise ValueError(f"nothing separates field '{name}' from the one before it; put a blank in between")
            self.fields[name] = spec or FIELDS[name][2]
            self._parts.append((name, self.fields[name]))
            expression += f"(?P<{name}>{FIELDS[name][0]})"
        self._expression = re.compile(expression, re.IGNORECASE)

    def __bool__(self) -> bool:
        return any(self._parts)

    def text(self, values: Mapping[str, float | str]) -> str:
        """The line for values of all fields."""
        return "".join(part if isinstance(part, str) else format(values[part[0]], part[1]) for part in self._parts)

    def match(self, text: str) -> dict | None:
        """The values of the fields in a line; None for another line."""
        found = self._expression.fullmatch(text.strip())
        return found and {name: FIELDS[name][1](value) for name, value in found.groupdict().items()}

    def resolution(self, name: str) -> float:
        """Of a number with a fixed number of digits behind the point; 0 for other formats."""
        digits = re.fullmatch(r".*\.([0-9]+)[fF]", self.fields.get(name, ""))
        return 10.0 ** -int(digits[1]) if digits else 0.0


def pattern_of(known: Iterable[str], needed: Iterable[str] = ()) -> Callable[[str], str]:
    """A check of a pattern in a rig: which fields it may have, and which it must have. An empty one has none."""
    known, needed = tuple(known), tuple(needed)

    def check(text: str) -> str:
        pattern = Pattern(text)
        for name in pattern.fields:
            if name not in known:
                raise ValueError(f"unknown field '{name}'{did_you_mean(name, known)}")
        for name in needed:
            if name not in pattern.fields and pattern:
                raise ValueError(f"lacks the field '{{{name}}}'; add it")
        return text

    return check


def _check_field(name: str, spec: str, conversion: str | None) -> None:
    if name not in FIELDS:
        raise ValueError(f"unknown field '{name}'{did_you_mean(name, FIELDS)}")
    if conversion:
        raise ValueError(f"field '{name}' has a conversion '!{conversion}'; take it out")
    expression, _, _, value = FIELDS[name]
    try:
        shown = format(value, spec)
    except ValueError:
        raise ValueError(f"field '{name}' has no format '{spec}'; use one such as '.4f'") from None
    if not re.fullmatch(expression, shown.strip()):
        raise ValueError(f"field '{name}' in format '{spec}' is '{shown}', which cannot be read; use one such as '.4f'")


# --- lines -----------------------------------------------------------------------------------------


def line(text: str, checked: bool) -> bytes:
    """The bytes of a line; checked: with a checksum."""
    raw = text.encode("ascii", "replace")
    return raw + (b"*%02X\n" % reduce(xor, raw, 0) if checked else b"\n")


def unwrap(raw: bytes, checked: bool = True) -> str | None:
    """The text of a line; None for a wrong or missing checksum, or bytes that are no text."""
    if checked:
        raw, _, given = raw.strip().rpartition(b"*")
        if given.upper() != b"%02X" % reduce(xor, raw, 0):
            return None
    text = raw.decode("latin-1").strip()
    return text if text.isascii() and text.isprintable() else None


def with_valid_checksum(data: bytes) -> bytes:
    """Lines with valid checksums, whatever their text is."""
    lines = [each.partition(b"*")[0].decode("latin-1") for each in data.removesuffix(b"\n").split(b"\n")]
    return b"".join(line(text, bool(text)) for text in lines)
