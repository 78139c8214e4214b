"""Equations as text and in LaTeX, parsed back, compute what the model computes."""

import math
import re
from itertools import pairwise

import pytest
import sympy
from matplotlib.mathtext import MathTextParser
from sympy.parsing.latex import parse_latex

from cosim.apps.derive.equations import latex, text
from cosim.apps.derive.equations.formulas import component_formulas
from cosim.apps.derive.equations.latex import latex_lines
from cosim.apps.derive.equations.text import printed, text_lines
from cosim.apps.derive.symbolic import as_text, exact
from tests.derive.equations.derivations import assert_equal, derivation, states
from tests.derive.equations.reading import compiled, evaluated, read_latex, read_text
from tests.kit.refusals import refusal

TOLERANCE = 1e-11  # numbers are printed with 15 digits
# time, springs and constraints of all kinds; loops; those with longer formulas of the same kinds take minutes
EACH = [
    f"mechanisms/{name}"
    for name in (
        *("car_axis", "slider_crank", "point_pendulum", "skate", "grab_jaw", "flyball_governor"),
        "coupled_wrist",
    )
]


@pytest.fixture
def formulas_made_once(monkeypatch):
    """Text and LaTeX are written from the same formulas, and making these takes longer than the rest of a test."""
    made = {}

    def once(d, c):
        if (id(d), c.name) not in made:
            made[id(d), c.name] = component_formulas(d, c)
        return made[id(d), c.name]

    for writer in (text, latex):
        monkeypatch.setattr(writer, "component_formulas", once)


@pytest.mark.parametrize("name", EACH)
@pytest.mark.usefixtures("formulas_made_once")
def test_formulas_parsed_back(name):
    d = derivation(name)
    for parsed in (read_text(d), read_latex(d)):
        assert {c.name for c in printed(d) if not c.is_zero} == set(parsed)
        values = evaluated(d, parsed)
        for state in states(d, 2):
            assert_equal(d, values(state), state, TOLERANCE, but=("inverse_dynamics", "forward_dynamics"))


def test_latex_in_the_parser_of_sympy():
    """Its grammar knows no dots above letters and no words as indices, so these get other names before; and a symbol
    before a parenthesis is a function there, so the product gets a sign."""
    d = derivation("cart_pole", symbols=True)
    names = {}  # of LaTeX -> of the grammar

    def read(formula):
        for found in sorted(set(re.findall(r"\\d?dot\{q\}_\{\d+\}|[A-Za-z]_\{\\mathrm\{.*?\}\}", formula))):
            names.setdefault(found, f"y_{{{len(names) + 1}}}")
            formula = formula.replace(found, names[found])
        formula = re.sub(r"(?<=[}a-z]) \\left\(", r" \\cdot \\left(", formula.replace(r" \cdot", r" \times"))
        own = {sympy.Symbol(short): sympy.Symbol(long) for long, short in names.items()}
        return sympy.sympify(parse_latex(formula, strict=True)).xreplace(own)

    values = evaluated(d, read_latex(d, read))
    for state in states(d, 2):
        assert_equal(d, values(state), state, TOLERANCE, but=("inverse_dynamics", "forward_dynamics"))


def test_latex_is_set():
    """Matplotlib sets each formula."""
    lines = latex_lines(derivation("mechanisms/slider_crank", symbols=True))
    display = lines[lines.index(r"\[") + 1]
    rows = [line for line in lines if "&=" in line or line.startswith(r"&\quad ")]
    setter = MathTextParser("path")
    for row in [display, *rows]:
        setter.parse(f"${row.removesuffix(chr(92) * 2).replace('&', '')}$")
    assert len(rows) > 10
    assert not any(row.endswith(chr(92) * 2) for row, after in pairwise(lines) if after == r"\end{align*}")


def test_latex_says_what_is_not_written():
    lines = latex_lines(derivation("two_link", symbols=True))
    assert r"M(q)\, \ddot{q} + S(q, \dot{q}) + G(q) + B(\dot{q}) = \tau" in lines
    k = lines.index(r"\noindent $M$ ($2 \times 2$), inertia; symmetric:")
    assert [line.partition(" ")[0] for line in lines[k + 2 : k + 6]] == ["M_{1,1}", r"&\quad", "M_{1,2}", "M_{2,2}"]
    pose = r"\noindent $T^{\mathrm{forearm}}$ ($3 \times 4$), pose of forearm: its axes as columns, then its origin, "
    assert f"{pose}in ground axes; other elements are 0:" in lines
    row = r"$l_{\mathrm{elbow}}$ & $0.4$ & $\mathrm{m}$ & position of elbow in upper\_arm, x \\"
    assert row in lines
    closed = latex_lines(derivation("mechanisms/four_bar"))
    reactions = r" = \tau + H^{T} \lambda, \qquad H\, \ddot{q} = \gamma"
    assert any(line.endswith(reactions) for line in closed)


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (math.pi, "pi*x"), (2 * math.pi, "2*pi*x"), (-math.pi / 9, "-pi*x/9"), (2 * math.pi * 0.2, "0.4*pi*x"),
        (3.14159, "3.14159*x"), (0.1, "x/10"), (0.0, "0"), (6.2831853071796, "6.2831853071796*x"),
    ],
)  # fmt: skip
def test_multiples_of_pi(number, shown):
    assert as_text(exact(number) * sympy.Symbol("x")) == shown


def test_text_has_functions_of_python():
    assert as_text(sympy.Abs(sympy.Symbol("x") - 1) + sympy.Symbol("y") ** 2) == "y**2 + abs(x - 1)"


def test_the_two_link_arm_in_full(said):
    said(text_lines(derivation("two_link", frames=["forearm"])))


def test_the_probe_of_the_measuring_arm_in_closed_form():
    """One formula for each coordinate, of the angles alone; by products of exponentials see tests/rig."""
    d = derivation("mechanisms/measuring_arm", frames=["probe"])
    steps, elements = read_text(d)["position_probe"]
    assert steps == []
    assert {str(s) for f in elements.values() for s in f.free_symbols} == {f"q{k}" for k in range(1, 7)}
    position = compiled([], elements)
    for state in states(d, 5):
        found = position({f"q{k}": x for k, x in enumerate(state["q"], 1)})
        assert [found[k,] for k in (1, 2, 3)] == pytest.approx(
            d.model.frame_pose(state["q"], "probe")[:3, 3], abs=1e-14
        )


def test_equations_too_long_to_print(said):
    d = derivation("robots/ur5.urdf")
    long = type(d)(**{**d.__dict__, "components": [c for c in d.components] * 8})
    said(refusal(text_lines, long), r"\d{4,}(?= operations)")
