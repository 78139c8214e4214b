"""Patterns of lines of text: `P{id} {position:.4f}`, with named fields as in `format`.

A pattern works in both directions. A blank in it stands for one or more; a field is a number, a whole number or a word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from string import Formatter
from typing import NamedTuple

from cosim.core.errors import did_you_mean


class FieldKind(NamedTuple):
    """A kind of field of a pattern: how its values are matched, read and written."""

    expression: str
    value: Callable[[str], float | str]
    format: str  # by default
    sample: float | str  # for trying formats


_NUMBER = r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|nan|[-+]?inf"
NUMBER = FieldKind(_NUMBER, float, ".7g", -1234.5678)
WHOLE_NUMBER = FieldKind("[0-9]{1,9}", int, "d", 10)
WORD = FieldKind(r"[!-)+-~]+", str, "s", "a")  # without an asterisk, which begins a checksum


class TextPattern:
    """A pattern of a line of text. fields: in their order, with their formats."""

    def __init__(self, text: str, kinds: Mapping[str, FieldKind]) -> None:
        """kinds: of the fields that there may be. Raises ValueError for a wrong pattern."""
        if not text.isprintable() or not text.isascii():
            raise ValueError("a line of text has printable ASCII characters only")
        try:
            parts = list(Formatter().parse(text.strip()))
        except ValueError as error:
            raise ValueError(f"{error}; write a field as {{position}} and a brace as two") from None
        self.fields: dict[str, str] = {}
        self._kinds = kinds
        self._parts: list[str | tuple[str, str]] = []
        expression = ""
        for literal, name, spec, conversion in parts:
            self._parts.append(literal)
            expression += r"[ \t]+".join(map(re.escape, re.split(r"[ \t]+", literal)))
            if name is None:
                continue
            self._check_field(name, spec or "", conversion)
            if name in self.fields:
                raise ValueError(f"field '{name}' occurs twice; take one out")
            if self.fields and not literal:
                raise ValueError(f"nothing separates field '{name}' from the one before it; put a blank in between")
            self.fields[name] = spec or kinds[name].format
            self._parts.append((name, self.fields[name]))
            expression += f"(?P<{name}>{kinds[name].expression})"
        self._expression = re.compile(expression, re.IGNORECASE)

    def __bool__(self) -> bool:
        return any(self._parts)

    def text(self, values: Mapping[str, float | str]) -> str:
        """The line for values of all fields."""
        return "".join(part if isinstance(part, str) else format(values[part[0]], part[1]) for part in self._parts)

    def match(self, text: str) -> dict | None:
        """The values of the fields in a line; None for another line."""
        found = self._expression.fullmatch(text.strip())
        return found and {name: self._kinds[name].value(value) for name, value in found.groupdict().items()}

    def resolution(self, name: str) -> float:
        """Of a number with a fixed number of digits behind the point; 0 for other formats."""
        digits = re.fullmatch(r".*\.([0-9]+)[fF]", self.fields.get(name, ""))
        return 10.0 ** -int(digits[1]) if digits else 0.0

    def _check_field(self, name: str, spec: str, conversion: str | None) -> None:
        if name not in self._kinds:
            raise ValueError(f"unknown field '{name}'{did_you_mean(name, self._kinds)}")
        if conversion:
            raise ValueError(f"field '{name}' has a conversion '!{conversion}'; take it out")
        kind = self._kinds[name]
        try:
            shown = format(kind.sample, spec)
        except ValueError:
            raise ValueError(f"field '{name}' has no format '{spec}'; use one such as '.4f'") from None
        if not re.fullmatch(kind.expression, shown.strip()):
            what = f"field '{name}' in format '{spec}' is '{shown}', which cannot be read"
            raise ValueError(f"{what}; use one such as '.4f'")


def pattern_check(
    kinds: Mapping[str, FieldKind], known: Iterable[str], needed: Iterable[str] = ()
) -> Callable[[str], str]:
    """A check of a pattern in a rig: which fields it may have, and which it must have. An empty one has none."""
    known, needed = tuple(known), tuple(needed)

    def check(text: str) -> str:
        pattern = TextPattern(text, kinds)
        for name in pattern.fields:
            if name not in known:
                raise ValueError(f"unknown field '{name}'{did_you_mean(name, known)}")
        for name in needed:
            if name not in pattern.fields and pattern:
                raise ValueError(f"lacks the field '{{{name}}}'; add it")
        return text

    return check
