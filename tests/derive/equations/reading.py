"""Equations in text and LaTeX read back: formulas of sympy by component, and their values."""

import math
import re

import numpy as np
import sympy
from sympy.parsing.sympy_parser import parse_expr
from sympy.printing.pycode import PythonCodePrinter

from cosim.apps.derive.equations.latex import latex_lines
from cosim.apps.derive.equations.text import printed, text_lines
from tests.derive.equations.derivations import derivation
from tests.kit.latex_formulas import equations as latex_equations
from tests.kit.latex_formulas import formula as latex_formula

WORDS = re.compile(r"[A-Za-z_]\w*")


def read_text(d):
    """Component -> (its named steps, {place: formula})."""
    return by_component(d, text_rows(text_lines(d)))


def read_latex(d, read=latex_formula):
    """The same from LaTeX; read: of one formula."""
    return by_component(d, latex_rows(latex_lines(d), read))


def by_component(d, rows):
    """From (left side, formula): component -> (its named steps, {place: formula})."""
    names, left = {c.letter: c.name for c in printed(d)}, iter(rows)
    found, steps = {}, []
    for text, formula in left:
        letter, _, place = text.partition("[")
        if place:
            name = names[letter]
            known, elements = found.setdefault(name, ([], {}))
            known += steps
            elements[tuple(int(k) for k in place.rstrip("]").split(","))] = formula
            steps = []
        else:
            steps.append((text, formula))
    return found


def text_rows(lines):
    for line in lines:
        if match := re.match(r"  ([A-Za-z_]\w*(?:\[[\d,]+\])?) += (.*)", line):
            names = set(WORDS.findall(match[2])) - set(dir(sympy)) - {"abs"}
            yield match[1], parse_expr(match[2], {name: sympy.Symbol(name) for name in names})


def latex_rows(lines, read):
    """With the names of text."""
    known = {r"\tau": "tau", "f": "f", "q": "q", "x": "x", r"\dot{q}": "v", r"\ddot{q}": "a", "v": "v", r"\dot{v}": "a"}

    def plain(name):
        letter, _, index = name.partition("_{")
        index = index.rstrip("}")
        if letter in known and index.isdigit():
            return f"{known[letter]}{index}"
        return letter + ("_" + index.removeprefix(r"\mathrm{").replace(r"\_", "_") if index else "")

    for left, right in latex_equations("\n".join(lines), read):
        letter, _, place = left.partition("_{") if "^" not in left else left.rpartition("_{")
        letter = re.sub(r"\^\{\\mathrm\{(.*)\}\}", r"_\1", letter).replace(r"\_", "_").replace(r"\gamma", "gamma")
        own = f"{letter}[{place.rstrip('}')}]" if letter != "x" and place else plain(left)
        if place or letter == "x":
            yield own, right.xreplace({s: sympy.Symbol(plain(s.name)) for s in right.free_symbols})


def evaluated(d, parsed):
    """Of a state: by component, its elements by rows."""
    functions = {c.name: compiled(*parsed.get(c.name, ([], {}))) for c in printed(d)}

    def values(state):
        given = {p.name: value for p, value in zip(d.parameters, state.get("p", []), strict=False)}
        given |= {f"{key}{k}": float(x) for key, array in state.items() for k, x in enumerate(array, 1) if key != "t"}
        given |= {"t": float(state["t"][0])} if "t" in state else {}
        found = {}
        for c in printed(d):
            found[c.name] = np.zeros(c.shape)
            for place, value in functions[c.name](given).items():
                at = tuple(k - 1 for k in place)
                found[c.name][at] = value
                if c.letter == "M":
                    found[c.name][at[::-1]] = value
        return found

    return values


def compiled(steps, elements):
    """The values of the elements as a function of the symbols'."""
    names = sorted({s.name for f in [*(f for _, f in steps), *elements.values()] for s in f.free_symbols})
    own = {name for name, _ in steps}
    given = [name for name in names if name not in own]
    lines = [f"def values({', '.join(f'_{n}' for n in given)}):"]
    lines += [f"    _{name} = {_python(formula)}" for name, formula in steps]
    lines += [f"    return {{{', '.join(f'{place}: {_python(formula)}' for place, formula in elements.items())}}}"]
    space: dict = {"math": math}
    exec("\n".join(lines), space)
    return lambda values: space["values"](*(values[name] for name in given))


def _python(formula):
    return PythonCodePrinter().doprint(formula.xreplace({s: sympy.Symbol(f"_{s.name}") for s in formula.free_symbols}))


def formulas(name, **more):
    """Component -> {place: formula} of the text, without named steps; the derivation is by symbols."""
    parsed = read_text(derivation(name, symbols=True, **more))
    assert not any(steps for steps, _ in parsed.values())
    return {component: elements for component, (_, elements) in parsed.items()}


def same(found, expected):
    """Each formula is the expected one, and no more are there."""
    assert set(found) == set(expected)
    for place, formula in expected.items():
        assert vanishes(found[place] - sympy.sympify(formula)), place


def vanishes(formula):
    """It is 0 to 25 digits for several values of its symbols, and so it is 0."""
    rng = np.random.default_rng(1)
    names = sorted(formula.free_symbols, key=str)
    some = [{name: sympy.Float(rng.uniform(0.3, 0.5), 40) for name in names} for _ in range(3)]
    return all(abs(formula.subs(values).evalf(40)) < 1e-25 for values in some)
