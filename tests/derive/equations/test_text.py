"""Equations as text and in LaTeX, parsed back, compute what the model computes."""

import math
import re
from itertools import pairwise

import pytest
import sympy
from matplotlib.mathtext import MathTextParser
from sympy.parsing.latex import parse_latex

from cosim.derive.equations import latex, text
from cosim.derive.equations.formulas import component_formulas
from cosim.derive.equations.latex import latex_lines
from cosim.derive.equations.text import printed, text_lines
from cosim.derive.symbolic import as_text, exact
from cosim.errors import InputError
from tests.derive.equations.derivations import RIGS, SAMPLES, assert_equal, derivation, states
from tests.derive.equations.reading import compiled, evaluated, read_latex, read_text
from tests.kit.levels import full
from tests.kit.samples import covering_samples

TOLERANCE = 1e-11  # numbers are printed with 15 digits
# sample rigs with a mechanism that no other one has
OTHERS = ("arm_sim", "axis_behind_bus", "cart_pole", "crane", "user_controller")
# long formulas of kinds that others have: trees of hinges, loops of hinges, a free body
LONG = {"mechanisms/measuring_arm", "mechanisms/release", "mechanisms/suspension", "mechanisms/triple_pendulum"}
MECHANISMS = {path.stem for path in (RIGS / "mechanisms").glob("*.yaml")}
ALL = SAMPLES | {
    name: {"symbols": k % 2 == 0}
    for k, name in enumerate(sorted({*OTHERS, *(f"mechanisms/{name}" for name in MECHANISMS)} - SAMPLES.keys()))
}


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


@pytest.mark.parametrize("name", covering_samples([name for name in ALL if name not in LONG], "mechanism"))
@pytest.mark.usefixtures("formulas_made_once")
def test_formulas_parsed_back(name):
    d = derivation(name, **ALL[name])
    for parsed in (read_text(d), read_latex(d)):
        assert {c.name for c in printed(d) if not c.is_zero} == set(parsed)
        values = evaluated(d, parsed)
        for state in states(d, 2):
            assert_equal(d, values(state), state, TOLERANCE, but=("inverse_dynamics", "forward_dynamics"))


@pytest.mark.parametrize("name", ["two_link", pytest.param("mechanisms/four_bar", marks=full)])
def test_latex_in_the_parser_of_sympy(name):
    """Its grammar knows no dots above letters and no words as indices, so these get other names before; and a symbol
    before a parenthesis is a function there, so the product gets a sign."""
    d = derivation(name, symbols=True)
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


@pytest.mark.parametrize("name", ["two_link", "mechanisms/slider_crank"])
def test_latex_is_set(name):
    """Matplotlib sets each formula."""
    lines = latex_lines(derivation(name, symbols=True))
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


# --- what is printed ---


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (math.pi, "pi*x"), (2 * math.pi, "2*pi*x"), (-math.pi / 9, "-pi*x/9"), (2 * math.pi * 0.2, "0.4*pi*x"),
        (3.14159, "3.14159*x"), (0.1, "x/10"), (0.0, "0"), (6.2831853071796, "6.2831853071796*x"),
    ],
)  # fmt: skip
def test_multiples_of_pi(number, said):
    assert as_text(exact(number) * sympy.Symbol("x")) == said


def test_text_has_functions_of_python():
    assert as_text(sympy.Abs(sympy.Symbol("x") - 1) + sympy.Symbol("y") ** 2) == "y**2 + abs(x - 1)"


def test_the_two_link_arm_in_full():
    said = text_lines(derivation("two_link", frames=["forearm"]))
    assert "\n".join(said) == TWO_LINK


@full
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


def test_equations_too_long_to_print():
    d = derivation("robots/ur5.urdf")
    long = type(d)(**{**d.__dict__, "components": [c for c in d.components] * 8})
    total = "8664"
    with pytest.raises(InputError) as error:
        text_lines(long)
    said = str(error.value)
    assert re.sub(r"\d{4,}", total, said, count=1) == (
        f"--to: the equations of ur5 have {total} operations, too many to read (4000 at most); "
        "pass --to c, python or matlab"
    )


TWO_LINK = """\
Equations of motion of two_link.

M(q) a + S(q, v) + G(q) + B(v) = tau

All in SI units, matrices by rows, vectors in the order of this table:

    joint     v      a        tau
v1  shoulder  rad/s  rad/s^2  N*m
v2  elbow     rad/s  rad/s^2  N*m

    coordinate  q
q1  shoulder    rad
q2  elbow       rad

A_i = A_s H_i Q_i: body i on its parent s (0 is the ground), with z along the axis of its joint
i  body       s  joint     Q       H
1  upper_arm  0  shoulder  Rz(q1)  [1 0 0 0; 0 1 0 0; 0 0 1 0]
2  forearm    1  elbow     Rz(q2)  [1 0 0 0.4; 0 1 0 0; 0 0 1 0]

r_forearm(q), 3: position of forearm in ground axes
  r_forearm[1]  = 0.4*cos(q1)
  r_forearm[2]  = 0.4*sin(q1)
  other elements are 0

T_forearm(q), 3 x 4: pose of forearm: its axes as columns, then its origin, in ground axes
  T_forearm[1,4]  = 0.4*cos(q1)
  T_forearm[2,4]  = 0.4*sin(q1)
  T_forearm[1,1]  = cos(q1 + q2)
  T_forearm[1,2]  = -sin(q1 + q2)
  T_forearm[2,1]  = sin(q1 + q2)
  T_forearm[2,2]  = cos(q1 + q2)
  T_forearm[3,3]  = 1
  other elements are 0

J_forearm(q), 6 x 2: Jacobian of forearm: velocity of its origin, then angular velocity, in ground axes
  J_forearm[1,1]  = -0.4*sin(q1)
  J_forearm[2,1]  = 0.4*cos(q1)
  J_forearm[6,1]  = 1
  J_forearm[6,2]  = 1
  other elements are 0

M(q), 2 x 2, symmetric: inertia
  M[1,1]  = 0.144*cos(q2) + 0.337
  M[1,2]  = 0.072*cos(q2) + 0.037
  M[2,2]  = 0.037

S(q, v), 2: centrifugal and Coriolis forces
  S[1]  = v2*(-0.144*v1 - 0.072*v2)*sin(q2)
  S[2]  = 0.072*v1**2*sin(q2)

G(q), 2: gravity
  G[1]  = 8.6328*cos(q1) + 1.7658*cos(q1 + q2)
  G[2]  = 1.7658*cos(q1 + q2)

B(v), 2: viscous friction
  B[1]  = v1/5
  B[2]  = v2/10

computed with       additions  multiplications  divisions  functions
position_forearm            0                2          0          2
pose_forearm                3                6          0          4
jacobian_forearm            0                2          0          2
mass_matrix                 5                4          0          1
coriolis                    4               12          0          2
gravity                     5               13          0          4
viscous_friction            0                2          0          0
inverse_dynamics           16               25          0          4
forward_dynamics           19               36          1          5
equation of motion         14               31          0          7"""
