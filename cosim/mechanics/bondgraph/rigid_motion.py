"""What in a graph follows chosen variables rigidly: constant multiples, found from the equations alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.bondgraph.assembly import Assembly, Loop
from cosim.mechanics.bondgraph.equations import Function, Linear, Variable


class Following(NamedTuple):
    """How a variable follows inputs. ratios: input -> constant multiple; other: whether it depends on something else;
    varies: whether it depends on the inputs in another way than by constant multiples."""

    ratios: Mapping[Variable, Numeric]
    other: bool = False
    varies: bool = False

    @property
    def follows(self) -> bool:
        """Whether it depends on the inputs at all."""
        return bool(self.ratios) or self.varies

    @property
    def alone(self) -> bool:
        """Whether it is a constant multiple of the inputs and nothing else."""
        return not (self.other or self.varies)


NOT = Following({}, other=True)


def following(assembly: Assembly, inputs: frozenset[Variable]) -> dict[Variable, Following]:
    """Of every variable of the graph how it follows these ones, as if they were inputs."""
    found = {variable: Following({variable: 1.0}) for variable in inputs}
    of = assembly.equations.of
    for step in assembly.order:
        if step in inputs:
            continue
        if isinstance(step, Loop):
            members = (*step.guessed, *step.rest)
            used = (found.get(v, NOT) for member in members for v in of[member].uses if v not in members)
            together = Following({}, other=True, varies=any(form.follows for form in used))
            found |= dict.fromkeys(members, together)
            continue
        equation = of[step]
        if isinstance(equation, Linear):
            found[step] = _of_sum(equation, found)
        elif isinstance(equation, Function) and not equation.uses:
            found[step] = Following({}, other=not ops.is_zero(equation.fn()))
        else:
            forms = [found.get(variable, NOT) for variable in equation.uses]
            follows, other = any(form.follows for form in forms), any(form.other for form in forms)
            found[step] = Following({}, other or not follows, follows)
    return found


def _of_sum(equation: Linear, found: Mapping[Variable, Following]) -> Following:
    ratios: dict[Variable, Numeric] = {}
    other = varies = False
    for factor, variable, modulus in equation.terms:
        form = found.get(variable, NOT)
        by = None if modulus is None else found.get(modulus, NOT)
        other = other or form.other or by is not None
        varies = varies or form.varies or (by is not None and (form.follows or by.follows))
        if by is None:
            for given, ratio in form.ratios.items():
                ratios[given] = ratios[given] + factor * ratio if given in ratios else factor * ratio
    return Following({given: ratio for given, ratio in ratios.items() if not ops.is_zero(ratio)}, other, varies)
