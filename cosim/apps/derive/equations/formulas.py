"""The components as formulas: simplified where they are short, in named steps where they are long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
import sympy

from cosim.apps.derive.equations.code import Instruction, instructions, named_results
from cosim.apps.derive.equations.components import Derivation, EquationTerm
from cosim.apps.derive.equations.polynomial import NotPolynomial, polynomials, short_form
from cosim.apps.derive.symbolic import TRUTH_VALUES, Formula, applied, exact, formula_symbol
from cosim.mechanics.multibody.constrained_dynamics import GROUND
from cosim.mechanics.multibody.joints import PRISMATIC, REVOLUTE
from cosim.mechanics.multibody.tree import Tree

LARGEST_SIMPLIFIED = 300  # instructions of a component that is simplified
LONGER = 2.5  # a simplified form is preferred up to this many times the operations of its steps,
SHORT = 40  # and below this many operations
MOST_CLOSED = 400  # operations of a position that is printed without steps
PARALLEL = 1e-9  # of two axes: how far the cosine between them is from 1
Z = np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True)
class ComponentFormulas:
    """`steps`: named terms, each of earlier ones; `elements` of the component, by rows, in terms of them."""

    component: EquationTerm
    steps: Sequence[tuple[Formula, Formula]]
    elements: Sequence[Formula]

    @property
    def shown(self) -> list[tuple[tuple[int, ...], Formula]]:
        """(indices from 1, formula) of the elements that are not 0; of a symmetric matrix the upper half; the last
        column of a pose, its position, first."""
        shape = self.component.shape
        places = [tuple(k + 1 for k in place) for place in np.ndindex(*shape)]
        found = [
            (place, formula)
            for place, formula in zip(places, self.elements, strict=True)
            if formula != 0 and not (self.component.letter == "M" and place[0] > place[1])
        ]
        return sorted(found, key=lambda item: item[0][1] != 4) if shape == (3, 4) else found


def name_of(d: Derivation, key: str, k: int) -> str:
    """Of element k, from 0, of an input."""
    return d.names[key][k] if key in d.names else f"{key}{k + 1}"


def symbols_of(d: Derivation) -> dict[str, list[Formula]]:
    """The symbols of each input: q1, v1, …; t; parameters by their names."""
    found = {
        name: [formula_symbol(name_of(d, name, k)) for k in range(column.numel())] for name, column in d.inputs.items()
    }
    named = {"p": [formula_symbol(p.name) for p in d.parameters], "t": [formula_symbol("t")]}
    return found | {name: named[name] for name in named if name in found}


def component_formulas(d: Derivation, c: EquationTerm) -> ComponentFormulas:
    """Raises CompileError for an operation without a formula."""
    steps = instructions([d.inputs[a] for a in c.arguments], c.entries)
    symbols = symbols_of(d)
    inputs = [symbols[a] for a in c.arguments]
    named, elements = _in_steps(steps, inputs)
    simplified = _simplified(steps, inputs, _groups(d, symbols))
    if c.name.startswith("position_"):
        nested = _closed(named, elements)
        pairs = zip(nested, simplified or nested, strict=True)
        closed = [min(pair, key=sympy.count_ops) for pair in pairs]
        if _operations(closed) <= MOST_CLOSED:
            return ComponentFormulas(c, [], closed)
    most = max(SHORT, LONGER * _operations([*(f for _, f in named), *elements]))
    if simplified is not None and _operations(simplified) <= most:
        return ComponentFormulas(c, [], simplified)
    return ComponentFormulas(c, named, elements)


def _groups(d: Derivation, symbols: Mapping[str, Sequence[Formula]]) -> list[list[Formula]]:
    """The angles about parallel axes: of joints, or of the bodies that move in a plane."""
    if d.cartesian is None:
        return parallel_angles(d.model.equations.tree, symbols["q"])
    return [] if d.cartesian.basis is None else [list(symbols.get("r", ())[2::3])]


def _simplified(
    steps: Sequence[Instruction], inputs: Sequence[Sequence[Formula]], groups: Sequence[Sequence[Formula]]
) -> list[Formula] | None:
    """None where it would be long."""
    if len(steps) > LARGEST_SIMPLIFIED:
        return None
    try:
        found = polynomials(steps, inputs, groups)
    except NotPolynomial:
        return None
    return [short_form(polynomial) for polynomial in found]


def _closed(named: Sequence[tuple[Formula, Formula]], elements: Sequence[Formula]) -> list[Formula]:
    """The elements without steps."""
    known: dict[Formula, Formula] = {}
    for symbol, formula in named:
        known[symbol] = formula.xreplace(known)
    return [formula.xreplace(known) for formula in elements]


def _operations(formulas: Sequence[Formula]) -> int:
    return sum(int(sympy.count_ops(formula)) for formula in formulas)


def _in_steps(
    steps: Sequence[Instruction], inputs: Sequence[Sequence[Formula]]
) -> tuple[list[tuple[Formula, Formula]], list[Formula]]:
    """(name, formula) of what is used more than once, and the formulas of the outputs."""
    named, numbers = named_results(steps), count(1)
    value: dict[int, Formula] = {}
    found: list[tuple[Formula, Formula]] = []
    outputs: dict[int, Formula] = {}
    for step in steps:
        match step.name:
            case "INPUT":
                value[step.result] = inputs[step.operands[0]][step.operands[1]]
            case "CONST":
                value[step.result] = exact(step.value)
            case "OUTPUT":
                outputs[step.result] = value[step.operands[0]]
            case _:
                formula = applied(step.name, [value[k] for k in step.operands])
                if step.result in named and not formula.is_Atom and not isinstance(formula, TRUTH_VALUES):
                    symbol = formula_symbol(f"x{next(numbers)}")
                    found.append((symbol, formula))
                    formula = symbol
                value[step.result] = formula
    return found, [outputs[k] for k in sorted(outputs)]


def parallel_angles(tree: Tree, q: Sequence[Formula]) -> list[list[Formula]]:
    """The angles of joints with parallel axes, on one body or on each other; their sums are angles of bodies."""
    groups: list[tuple[int, np.ndarray, list[Formula]]] = []  # the axis along which body, and the angles about it
    of_body: dict[int, list[Formula]] = {}  # of those that turn: the group of their angle
    turned_with = {GROUND: (GROUND, np.eye(3))}  # of each body: one that does not turn against it, its own axes in that
    starts = np.cumsum([0, *(0 if j.mimic else kind.nq for j, kind in zip(tree.joints, tree.kinds, strict=True))])
    for k, (joint, body, kind) in enumerate(zip(tree.joints, tree.bodies, tree.kinds, strict=True)):
        base, turn = turned_with[tree.parents[k]]
        axes = turn @ body.rotation
        turned_with[k] = (base, axes) if kind is PRISMATIC else (k, np.eye(3))
        if kind is not REVOLUTE or joint.mimic is not None:
            continue
        if base in of_body and _are_parallel(axes[:, 2], Z):
            group = of_body[base]
        else:
            group = next((g for b, axis, g in groups if b == base and _are_parallel(axis, axes[:, 2])), [])
            if not group:
                groups.append((base, axes[:, 2], group))
        group.append(q[starts[k]])
        of_body[k] = group
    return [group for _, _, group in groups]


def _are_parallel(first: np.ndarray, second: np.ndarray) -> bool:
    return abs(abs(float(first @ second)) - 1.0) < PARALLEL
