"""The equations of motion as text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cosim.apps.derive.equations.cartesian_text import cartesian_text
from cosim.apps.derive.equations.code import operations_of
from cosim.apps.derive.equations.components import Derivation, EquationTerm
from cosim.apps.derive.equations.formulas import ComponentFormulas, component_formulas
from cosim.apps.derive.equations.header import count_lines, description
from cosim.apps.derive.symbolic import as_text
from cosim.apps.derive.tables import table
from cosim.core.errors import InputError
from cosim.mechanics.multibody.bodies import Body
from cosim.mechanics.multibody.elastic_joints import NodeKind
from cosim.mechanics.multibody.joints import entry_of
from cosim.mechanics.multibody.model import Model
from cosim.mechanics.multibody.part_names import shown_name

MOST_PRINTED = 4000  # operations of the components that are printed

ROUNDING = 1e-15  # of the axes of a body

PLACES = {"drum": "Rz({})", "slider": "Tz({})"}  # of joints drawn so; others have their names


def printed(d: Derivation) -> list[EquationTerm]:
    """The components that are read; code has efforts and accelerations in one go too."""
    return [*d.kinematics, *d.components]


def check_size(model: Model) -> None:
    """Raises InputError for a mechanism whose inertia alone has more elements than anybody reads, before it is
    derived."""
    tree, above, elements = model.equations.tree, list[int](), 0
    for k, kind in enumerate(tree.kinds):
        parent = tree.parents[k]
        above.append(kind.nv + (above[parent] if parent >= 0 else 0))  # dofs from the ground to this body
        elements += kind.nv * above[k]
    if elements > MOST_PRINTED:
        what = f"the inertia of {model.mechanism.name} alone has {elements} elements, too many to read"
        raise InputError(f"{what} ({MOST_PRINTED} at most); pass --to c, python or matlab", "--to")


def check_readable(d: Derivation) -> None:
    """Raises InputError for equations that nobody would read."""
    total = sum((operations_of([d.inputs[a] for a in c.arguments], c.entries).total for c in printed(d)), 0)
    if total > MOST_PRINTED:
        what = f"the equations of {d.name} have {total} operations, too many to read ({MOST_PRINTED} at most)"
        raise InputError(f"{what}; pass --to c, python or matlab", "--to")


def text_lines(d: Derivation) -> list[str]:
    """Raises InputError for equations too long to print."""
    check_readable(d)
    found = {c.name: component_formulas(d, c) for c in printed(d)}
    lines = [*description(d), *([] if d.cartesian else [*_chain(d), ""])]
    for c in printed(d):
        lines += [*_component(c, found[c.name]), ""]
    if d.cartesian:
        lines += [*cartesian_text(d, found), ""]
    return [*lines, *count_lines(d)]


def _chain(d: Derivation) -> list[str]:
    """Structure code s of the bodies, and their constant matrices H where these are numbers."""
    tree, numbers = d.model.equations.tree, "p" not in d.inputs
    coordinates, start, of_body = list[str](), 0, list[range]()
    for joint, kind, parent in zip(tree.joints, tree.kinds, tree.parents, strict=True):
        here = range(start + 1, start + 1 + kind.nq * (joint.mimic is None))
        start += len(here)
        here = of_body[parent] if isinstance(kind, NodeKind) else here
        of_body.append(here)
        own = ", ".join(f"q{k}" for k in here) or (f"q of {joint.mimic.joint}" if joint.mimic else "t")
        coordinates.append(PLACES.get(entry_of(joint).drawn, f"{joint.kind}({{}})").format(own))
    rows = [
        (f"{k + 1}", *map(shown_name, (joint.child, f"{tree.parents[k] + 1}", joint.name)), place, matrix)
        for k, (joint, body, place) in enumerate(zip(tree.joints, tree.bodies, coordinates, strict=True))
        for matrix in [_matrix(body) if numbers else ""]
    ]
    heading = "A_i = A_s H_i Q_i: body i on its parent s (0 is the ground), with z along the axis of its joint"
    return [heading, *table([("i", "body", "s", "joint", "Q", "H" * numbers), *rows], "><><<<")]


def _matrix(body: Body) -> str:
    rows = np.column_stack([body.rotation, body.position])
    rows = np.where(np.abs(rows) <= ROUNDING, 0.0, rows)
    return "[" + "; ".join(" ".join(f"{x:.6g}" for x in row) for row in rows) + "]"


def _component(c: EquationTerm, found: ComponentFormulas) -> list[str]:
    half = ", symmetric" * (c.letter == "M" and c.shape[0] > 1)
    arguments = ", ".join(a for a in c.arguments if a != "p")
    head = f"{c.letter}({arguments}), {' x '.join(map(str, c.shape))}{half}: {c.about}"
    rows = [(f"  {symbol}", f"= {as_text(formula)}") for symbol, formula in found.steps]
    rows += [(f"  {_label(c, place)}", f"= {as_text(formula)}") for place, formula in found.shown]
    return [head, *table(rows, "<<"), *(["  0"] if not rows else _zeros(found))]


def _zeros(found: ComponentFormulas) -> list[str]:
    return ["  other elements are 0"] if any(formula == 0 for formula in found.elements) else []


def _label(c: EquationTerm, place: Sequence[int]) -> str:
    return f"{c.letter}[{','.join(map(str, place))}]"
