"""The pages, their tables and examples, and the row of a field of a parameter dataclass."""

from __future__ import annotations

import dataclasses
import math
import re
from dataclasses import MISSING
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from cosim.core.types import PerJoint
from cosim.mechanics.bondgraph import Law
from cosim.rig.reading import schema
from cosim.rig.sections.contact_laws import ContactStiffness, FrictionPair
from cosim.rig.sections.directions import Directions
from cosim.rig.sections.parts import NumberWithUnit
from cosim.rig.sections.reactions import NamesOrAll
from cosim.rig.sections.self_contact import LinkPairs, SelfContact
from cosim.rig.sections.tuning import NamedFigure

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs"
PAGES = {
    str(file.relative_to(FOLDER)): file.read_text(encoding="utf-8") for file in sorted(FOLDER.rglob("*.md"))
}  # every page by its path in docs/
DOCS = "\n".join(PAGES.values())
TEXT = " ".join(DOCS.split())  # without line breaks, to look for a sentence
README = (ROOT / "README.md").read_text(encoding="utf-8")
ARCHITECTURE = PAGES["explanation/architecture.md"]


def tables(text: str) -> dict[str, list[list[str]]]:
    """Heading -> rows of cells of the first table below it, its header first."""
    found: dict[str, list[list[str]]] = {}
    heading, closed = "", True
    for line in re.sub(r"```.*?```", "", text, flags=re.DOTALL).splitlines():
        if line.startswith("#"):
            heading, closed = line.lstrip("# ").strip(), False
        elif line.startswith("|") and not closed:
            found.setdefault(heading, []).append([cell.strip() for cell in line.strip().strip("|").split("|")])
        elif heading in found:
            closed = True
    return {heading: [rows[0], *rows[2:]] for heading, rows in found.items()}


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def names(heading: str) -> set[str]:
    """The words in code of the first column of a table."""
    return {name for row in TABLES[heading][1:] for name in re.findall(r"`([^`]+)`", row[0])}


def all_tables() -> dict[str, list[list[str]]]:
    """The tables of every page by heading; a heading with a table is unique among the pages."""
    found: dict[str, list[list[str]]] = {}
    for page, text in PAGES.items():
        for heading, rows in tables(text).items():
            assert heading not in found, f"docs/{page}: a second table under the heading '{heading}'"
            found[heading] = rows
    return found


TABLES = all_tables()

TYPES = {
    float: "number",
    int: "whole number",
    bool: "true, false",
    str: "text",
    dict: "section",
    Law: "expression",
    list: "list",
    PerJoint: "per joint",
    NumberWithUnit: "number",
    Directions: "number, 3 or 6",
    NamedFigure: "names, or a mapping",
    NamesOrAll: "names or `all`",
    FrictionPair: "number, or `static` and `sliding`",
    ContactStiffness: "number or `rigid`",
    SelfContact: "true, pairs or section",
    LinkPairs: "pairs of names",
}


def shown_type(hint: Any) -> str:
    inner = [arg for arg in get_args(hint) if arg is not NoneType]
    if hint in TYPES:
        return TYPES[hint]
    if NoneType in get_args(hint):
        return shown_type(inner[0])
    if get_origin(hint) is Literal:
        return ", ".join(f"`{option}`" for option in inner)
    if get_origin(hint) is Annotated:
        return shown_type(inner[0])
    if get_origin(hint) is tuple:
        words = schema._ELEMENTS.get(schema._bare_type(inner[0]), "list of sections")
        return words if ... in inner else f"{len(inner)} {words}"
    assert dataclasses.is_dataclass(hint)
    return "section"


def shown_default(value: Any) -> str:
    if value is MISSING:
        return "required"
    if isinstance(value, tuple):
        return f"[{', '.join(map(shown_default, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return {math.inf: "∞", -math.inf: "-∞"}.get(value, f"{value:g}")
    if isinstance(value, str):
        return f"`{value}`" if value else "empty"
    return "none"


def shown_bounds(meta: Any) -> str:
    signs = {"above": ">", "min": "≥", "max": "≤"}
    bounds = ((sign, meta[key]) for key, sign in signs.items() if meta[key] is not None)
    return ", ".join(f"{sign} {bound if isinstance(bound, int) else format(bound, 'g')}" for sign, bound in bounds)


def expected_cells(cls: type, field: dataclasses.Field) -> list[str]:
    """The cells of a field's row, without its meaning; a dash means not applicable."""
    hint = get_type_hints(cls, include_extras=True)[field.name]
    unit = "" if field.metadata["unit"] == "1" else field.metadata["unit"]
    default = "none" if dataclasses.is_dataclass(field.default) else shown_default(field.default)
    cells = [f"`{field.name}`", shown_type(hint), unit, default, shown_bounds(field.metadata)]
    return [cell or "–" for cell in cells]
