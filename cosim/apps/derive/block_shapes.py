"""The outlines and texts of the blocks of a block diagram, around their middle: lengths in inches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import sympy

from cosim.apps.derive.block_diagram import BlockDiagram, DiagramBlock
from cosim.apps.derive.picture import CHARACTER_WIDTH, LINE_HEIGHT, Box, break_name, text_size
from cosim.apps.derive.symbolic import Formula, as_short_text, formula_symbol
from cosim.mechanics.bondgraph.equations import Variable

PIN = 0.19  # distance of inputs
SIDE = 0.34  # of the square of an integrator
GAIN_HEIGHT = 0.42
PADDING = 0.08
LINE_LENGTH, MOST_LINES, LARGEST_WRITTEN = 30, 4, 60  # of a formula: characters, lines, operations
LONG_LAW = "φ"


class BlockShape(NamedTuple):
    """The outline of a block and its texts. text: lines in it; title: above them; labels: beside its inputs; given:
    beside its outputs; name: below it. inputs, outputs: the heights of its pins, from above."""

    half_width: float
    half_height: float
    text: tuple[str, ...]
    inputs: tuple[float, ...]
    outputs: tuple[float, ...]
    title: str = ""
    labels: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    name: tuple[str, ...] = ()

    @property
    def width(self) -> float:
        return max(2 * self.half_width, text_size("\n".join(self.name))[0])

    @property
    def up(self) -> float:
        return self.half_height

    @property
    def down(self) -> float:
        return self.half_height + (LINE_HEIGHT * len(self.name) + 0.02 if self.name else 0.0)

    @property
    def boxes(self) -> list[Box]:
        """Of the outline and of the name."""
        own = 0.0, 0.0, 2 * self.half_width, 2 * self.half_height
        width, height = text_size("\n".join(self.name))
        return [own, (0.0, -self.half_height - 0.02 - height / 2, width, height)] if self.name else [own]


def shape_of(diagram: BlockDiagram, block: DiagramBlock) -> BlockShape:
    """The shape of a block of a diagram."""
    pins = _spread(len(block.takes))
    match block.kind:
        case "input" | "output":
            lines = tuple(break_name(block.owner).split("\n"))
            width, height = text_size("\n".join(lines))
            out = (0.0,) * len(block.gives)
            return BlockShape(width / 2 + 0.12, height / 2 + 0.06, lines, pins, out)
        case "state":
            return BlockShape(SIDE / 2, SIDE / 2, ("∫",), pins, (0.0,), name=tuple(break_name(block.owner).split("\n")))
        case "sum":
            return BlockShape(0.13, max(0.13, PIN * len(pins) / 2), (), pins, (0.0,))
        case "product":
            return BlockShape(0.15, max(0.15, PIN * len(pins) / 2), ("×",), pins, (0.0,))
        case "gain":
            # a triangle that is as high as the text where this ends
            text = as_short_text(block.formula)
            return BlockShape(0.5 * (1.34 * text_size(text)[0] + 0.14), GAIN_HEIGHT / 2, (text,), pins, (0.0,))
        case "solve":
            return _solve_shape(diagram, block)
        case _:
            return _law_shape(diagram, block)


def _spread(count: int, distance: float = PIN) -> tuple[float, ...]:
    """The heights of pins around the middle, from above."""
    return tuple(distance * ((count - 1) / 2 - k) for k in range(count))


def short_name(name: str, owner: str) -> str:
    """The name of a value without the components that it shares with the element that uses it."""
    scopes = owner.split(".")
    while scopes:
        if name.startswith(before := ".".join(scopes) + "."):
            return name[len(before) :]
        scopes.pop()
    return name


def _short_names(diagram: BlockDiagram, block: DiagramBlock) -> dict[Variable, str]:
    names = {v: short_name(str(diagram.symbols[v]), block.owner) for v in block.takes}
    clear = len(set(names.values())) == len(names)
    return names if clear else {v: str(diagram.symbols[v]) for v in block.takes}


def _law_shape(diagram: BlockDiagram, block: DiagramBlock) -> BlockShape:
    names = _short_names(diagram, block)
    lines = written(block.formula, {diagram.symbols[v]: formula_symbol(name) for v, name in names.items()})
    if block.kind == "constant":
        width, height = text_size("\n".join(lines))
        return BlockShape(width / 2 + PADDING, height / 2 + PADDING, lines, (), (0.0,))
    title = break_name(block.owner) if len(block.owner) > LINE_LENGTH else block.owner
    labels = tuple(names.values()) if len(names) > 1 or lines == (LONG_LAW,) else ()
    beside = _width(labels) + 0.08 if labels else 0.0
    width = max(_width(lines) + beside, _width(title.split("\n"))) + 2 * PADDING
    above = LINE_HEIGHT * len(title.split("\n"))
    height = max(LINE_HEIGHT * len(lines), PIN * len(names) - 0.04) + above + 2 * PADDING
    pins = tuple(pin - above / 2 for pin in _spread(len(names)))
    return BlockShape(width / 2, height / 2, lines, pins, (0.0,), title, labels)


def _solve_shape(diagram: BlockDiagram, block: DiagramBlock) -> BlockShape:
    names = tuple(str(diagram.symbols[v]) for v in block.takes)
    given = tuple(str(diagram.symbols[v]) for v in block.gives)
    width = _width(names) + _width(given) + 0.3 + 2 * PADDING
    height = PIN * max(len(names), len(given)) + LINE_HEIGHT + 2 * PADDING
    pins, out = (tuple(pin - LINE_HEIGHT / 2 for pin in _spread(len(some))) for some in (names, given))
    return BlockShape(width / 2, height / 2, (), pins, out, "solved for", names, given)


def _width(lines: Iterable[str]) -> float:
    return CHARACTER_WIDTH * max(map(len, lines), default=0)


def written(formula: Formula, names: Mapping[Formula, Formula]) -> tuple[str, ...]:
    """The lines of a formula, or φ of one that is long."""
    if _larger(formula, LARGEST_WRITTEN):
        return (LONG_LAW,)
    text = as_short_text(formula.xreplace(dict(names)))
    lines = _wrapped(text.removeprefix("(").removesuffix(")") if formula.is_Piecewise else text)
    return lines if len(lines) <= MOST_LINES else (LONG_LAW,)


def _wrapped(text: str) -> tuple[str, ...]:
    """Lines that end after an operator, a comma or a space."""
    lines = [""]
    for part in re.findall(r"[^ */]*[ */]*", text):
        if lines[-1] and len((lines[-1] + part).rstrip()) > LINE_LENGTH:
            lines.append("")
        lines[-1] += part
    return tuple(line.rstrip() for line in lines)


def _larger(formula: Formula, size: int) -> bool:
    """Whether the formula has more parts, counted no further than that."""
    return any(k > size for k, _ in enumerate(sympy.preorder_traversal(formula)))
