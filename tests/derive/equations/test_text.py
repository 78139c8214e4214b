"""Equations as text and in LaTeX, parsed back, compute what the model computes; short ones are those of textbooks."""

import math
import re

import numpy as np
import pytest
import sympy
from sympy.parsing.sympy_parser import parse_expr

from cosim.derive.equations.text import latex_lines, printed, text_lines
from cosim.errors import InputError
from tests.derive.equations.derivations import SAMPLES, assert_equal, derivation, states
from tests.kit.latex_formulas import equations as latex_equations

TOLERANCE = 1e-11  # numbers are printed with 15 digits
WORDS = re.compile(r"[A-Za-z_]\w*")
samples = pytest.mark.parametrize("name", SAMPLES)


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


def text_rows(d, lines):
    for line in lines:
        if match := re.match(r"  ([A-Za-z_]\w*(?:\[[\d,]+\])?) += (.*)", line):
            names = set(WORDS.findall(match[2])) - set(dir(sympy))
            yield match[1], parse_expr(match[2], {name: sympy.Symbol(name) for name in names})


def latex_rows(d, lines):
    """With the names of text."""
    known = {r"\tau": "tau", "f": "f", "q": "q", "x": "x", r"\dot{q}": "v", r"\ddot{q}": "a", "v": "v", r"\dot{v}": "a"}

    def plain(name):
        letter, _, index = name.partition("_{")
        index = index.rstrip("}")
        if letter in known and index.isdigit():
            return f"{known[letter]}{index}"
        return letter + ("_" + index.removeprefix(r"\mathrm{").replace(r"\_", "_") if index else "")

    for left, formula in latex_equations("\n".join(lines)):
        letter, _, place = left.partition("_{") if "^" not in left else left.rpartition("_{")
        letter = re.sub(r"\^\{\\mathrm\{(.*)\}\}", r"_\1", letter).replace(r"\_", "_").replace(r"\gamma", "gamma")
        own = f"{letter}[{place.rstrip('}')}]" if letter != "x" and place else plain(left)
        if place or letter == "x":
            yield own, formula.subs({s: sympy.Symbol(plain(s.name)) for s in formula.free_symbols}, simultaneous=True)


def evaluated(d, parsed, state):
    """By component, its elements by rows."""
    values = {p.name: value for p, value in zip(d.parameters, state.get("p", []), strict=False)}
    values |= {f"{key}{k}": float(x) for key, array in state.items() for k, x in enumerate(array, 1) if key != "t"}
    values["t"] = float(state["t"][0]) if "t" in state else 0.0
    found = {}
    for c in printed(d):
        steps, elements = parsed.get(c.name, ([], {}))
        here = dict(values)
        for name, formula in steps:
            here[name] = number(formula, here)
        out = np.zeros(c.shape)
        for place, formula in elements.items():
            at = tuple(k - 1 for k in place)
            out[at] = number(formula, here)
            if c.letter == "M":
                out[at[::-1]] = out[at]
        found[c.name] = out
    return found


def number(formula, values):
    names = sorted(formula.free_symbols, key=str)
    return float(sympy.lambdify(names, formula, [{"Ne": lambda a, b: a != b}, math])(*(values[s.name] for s in names)))


@samples
@pytest.mark.parametrize(("lines", "rows"), [(text_lines, text_rows), (latex_lines, latex_rows)], ids=["text", "latex"])
def test_formulas_parsed_back(name, lines, rows):
    d = derivation(name, **SAMPLES[name])
    parsed = by_component(d, rows(d, lines(d)))
    assert {c.name for c in printed(d) if not c.is_zero} == set(parsed)
    for state in states(d, 2):
        assert_equal(d, evaluated(d, parsed, state), state, TOLERANCE, but=("inverse_dynamics", "forward_dynamics"))


# --- against textbooks: written by hand ---


def formulas(name, **more):
    """Component -> {place: formula} of the text, without named steps."""
    d = derivation(name, symbols=True, **more)
    parsed = by_component(d, text_rows(d, text_lines(d)))
    assert not any(steps for steps, _ in parsed.values())
    return {component: elements for component, (_, elements) in parsed.items()}


def same(found, expected):
    """Each formula is the expected one, and no more are there."""
    assert set(found) == set(expected)
    for place, formula in expected.items():
        difference = found[place] - sympy.sympify(formula)
        assert sympy.simplify(sympy.expand(sympy.expand_trig(difference))) == 0, place


def test_the_two_link_arm_is_that_of_textbooks():
    """Spong, Hutchinson and Vidyasagar, Robot Modeling and Control, section 7.4 (planar elbow manipulator)."""
    I1, I2, m1, m2, lc1, lc2, l1, g, b1, b2, q1, q2, v1, v2 = sympy.symbols(
        "I_upper_arm_zz I_forearm_zz m_upper_arm m_forearm c_upper_arm c_forearm "
        "l_elbow g b_shoulder b_elbow q1 q2 v1 v2"
    )  # fmt: skip
    found, cos, sin = formulas("two_link"), sympy.cos, sympy.sin
    d12 = m2 * (lc2**2 + l1 * lc2 * cos(q2)) + I2
    same(
        found["mass_matrix"],
        {
            (1, 1): m1 * lc1**2 + m2 * (l1**2 + lc2**2 + 2 * l1 * lc2 * cos(q2)) + I1 + I2,
            (1, 2): d12,
            (2, 2): m2 * lc2**2 + I2,
        },
    )
    h = -m2 * l1 * lc2 * sin(q2)
    same(found["coriolis"], {(1,): h * v2 * v1 + h * (v1 + v2) * v2, (2,): -h * v1 * v1})
    same(
        found["gravity"],
        {
            (1,): (m1 * lc1 + m2 * l1) * g * cos(q1) + m2 * lc2 * g * cos(q1 + q2),
            (2,): m2 * lc2 * g * cos(q1 + q2),
        },
    )
    same(found["viscous_friction"], {(1,): b1 * v1, (2,): b2 * v2})


def test_the_load_of_the_two_link_arm():
    """The Jacobian of the elbow by hand: a force there turns the shoulder alone, a moment both."""
    l1, q1, f1, f2, f6 = sympy.symbols("l_elbow q1 f1 f2 f6")
    found = formulas("two_link", load="forearm")["load"]
    same(found, {(1,): -l1 * sympy.sin(q1) * f1 + l1 * sympy.cos(q1) * f2 + f6, (2,): f6})


def test_the_double_pendulum_by_lagrange():
    """From the Lagrangian, differentiated by sympy; angles are relative."""
    t = sympy.Symbol("t")
    I1, I2, m1, m2, c1, c2, length, g, b = sympy.symbols(
        "I_upper_zz I_lower_zz m_upper m_lower c_upper c_lower l_hinge_2 g b_hinge_1"
    )
    q = [sympy.Function(f"q{k}")(t) for k in (1, 2)]
    first, second = q[0], q[0] + q[1]
    x1, y1 = c1 * sympy.cos(first), c1 * sympy.sin(first)
    x2 = length * sympy.cos(first) + c2 * sympy.cos(second)
    y2 = length * sympy.sin(first) + c2 * sympy.sin(second)
    squares = [sum(sympy.diff(z, t) ** 2 for z in point) for point in ((x1, y1), (x2, y2))]
    turning = I1 * first.diff(t) ** 2 + I2 * second.diff(t) ** 2
    lagrangian = (m1 * squares[0] + m2 * squares[1] + turning) / 2 - g * (m1 * y1 + m2 * y2)
    efforts = [lagrangian.diff(x.diff(t)).diff(t) - lagrangian.diff(x) for x in q]
    plain = {
        x.diff(t, n): sympy.Symbol(f"{letter}{k}") for k, x in enumerate(q, 1) for n, letter in ((2, "a"), (1, "v"))
    }
    plain |= {x: sympy.Symbol(f"q{k}") for k, x in enumerate(q, 1)}
    found, a, v1 = formulas("mechanisms/double_pendulum"), sympy.symbols("a1 a2"), sympy.Symbol("v1")
    mass = found["mass_matrix"] | {(2, 1): found["mass_matrix"][1, 2]}
    for k, effort in enumerate(efforts, 1):
        total = mass[k, 1] * a[0] + mass[k, 2] * a[1] + found["coriolis"][k,] + found["gravity"][k,]
        difference = total - effort.subs(plain)
        assert sympy.simplify(sympy.expand(sympy.expand_trig(difference))) == 0
    same(found["viscous_friction"], {(1,): b * v1})


def test_the_slider_crank_with_its_loop():
    """The open chain by hand, and the closing vector equation of crank, rod and slide."""
    I1, I2, m1, m2, m3, c1, c2, r, g, q1, q2, q3, v1, v2 = sympy.symbols(
        "I_crank_zz I_rod_zz m_crank m_rod m_piston c_crank c_rod l_rod g q1 q2 q3 v1 v2"
    )
    rod, found, cos, sin = sympy.Rational(3, 10), formulas("mechanisms/slider_crank"), sympy.cos, sympy.sin
    same(
        found["mass_matrix"],
        {
            (1, 1): I1 + m1 * c1**2 + I2 + m2 * (r**2 + c2**2 + 2 * r * c2 * cos(q2)),
            (1, 2): I2 + m2 * (c2**2 + r * c2 * cos(q2)),
            (2, 2): I2 + m2 * c2**2,
            (3, 3): m3,
        },
    )
    same(found["coriolis"], {(1,): -m2 * r * c2 * sin(q2) * (2 * v1 * v2 + v2**2), (2,): m2 * r * c2 * sin(q2) * v1**2})
    same(
        found["gravity"],
        {(1,): g * ((m1 * c1 + m2 * r) * cos(q1) + m2 * c2 * cos(q1 + q2)), (2,): g * m2 * c2 * cos(q1 + q2)},
    )
    close = [r * cos(q1) + rod * cos(q1 + q2) - q3, r * sin(q1) + rod * sin(q1 + q2)]
    exact = {name: {k: sympy.nsimplify(f) for k, f in found[name].items()} for name in found}
    same(exact["constraint_residual"], {(k,): row for k, row in enumerate(close, 1)})
    jacobian = {(k, j): row.diff(q) for k, row in enumerate(close, 1) for j, q in enumerate((q1, q2, q3), 1)}
    same(exact["constraint_jacobian"], {place: entry for place, entry in jacobian.items() if entry != 0})
    pairs = [(x, vx, y, vy) for x, vx in ((q1, v1), (q2, v2)) for y, vy in ((q1, v1), (q2, v2))]
    turned = [sum(row.diff(x, y) * vx * vy for x, vx, y, vy in pairs) for row in close]
    same(exact["constraint_bias"], {(k,): -row for k, row in enumerate(turned, 1)})


def test_the_slider_crank_without_dependent_coordinates():
    """The equation of one coordinate, the crank angle, as textbooks have it: J φ̈ + ½ J' φ̇² + V'."""
    found = {
        name: {k: sympy.nsimplify(f) for k, f in e.items()} for name, e in formulas("mechanisms/slider_crank").items()
    }
    q1, q2, q3, v1, v2 = sympy.symbols("q1 q2 q3 v1 v2")
    names = ("I_crank_zz", "I_rod_zz", "m_crank", "m_rod", "m_piston", "c_crank", "c_rod", "l_rod", "g")
    numbers = [sympy.nsimplify(x) for x in (0.005, 0.008, 2, 1, 1.5, 0.03, 0.12, 0.1, 9.81)]
    values = dict(zip(map(sympy.Symbol, names), numbers, strict=True))
    I1, I2, m1, m2, m3, c1, c2, _, g = numbers
    r, rod = values[sympy.Symbol("l_rod")], sympy.Rational(3, 10)
    tilt = -sympy.asin(r * sympy.sin(q1) / rod)  # of the rod against the slide
    angles = {q2: tilt - q1, q3: r * sympy.cos(q1) + rod * sympy.cos(tilt)}
    # the machine's own way: energies as functions of the crank angle
    x = r * sympy.cos(q1) + c2 * sympy.cos(tilt)
    y = r * sympy.sin(q1) + c2 * sympy.sin(tilt)
    inertia = (
        I1 + m1 * c1**2 + m2 * (x.diff(q1) ** 2 + y.diff(q1) ** 2) + I2 * tilt.diff(q1) ** 2
        + m3 * angles[q3].diff(q1) ** 2
    )  # fmt: skip
    potential = g * (m1 * c1 * sympy.sin(q1) + m2 * y)
    # the derived equations along the motion that the loop allows
    along = [sympy.Integer(1), angles[q2].diff(q1), angles[q3].diff(q1)]
    mass = sympy.zeros(3, 3)
    for (i, j), entry in found["mass_matrix"].items():
        mass[i - 1, j - 1] = mass[j - 1, i - 1] = entry
    forces = [found["coriolis"].get((k,), 0) + found["gravity"].get((k,), 0) for k in (1, 2, 3)]
    reduced = sympy.Add(*(along[i] * mass[i, j] * along[j] for i in range(3) for j in range(3)))
    turned = [sympy.Add(*(mass[i, j] * along[j].diff(q1) * v1**2 for j in range(3))) for i in range(3)]
    bias = sympy.Add(*(x * (force + turn) for x, force, turn in zip(along, forces, turned, strict=True)))
    for angle in (0.2, 1.1, 2.5, -0.7):
        at = values | {v2: (along[1] * v1)}
        here = {q1: angle, v1: 1.3}
        assert float(reduced.subs(at).subs(angles).subs(here)) == pytest.approx(float(inertia.subs(here)), rel=1e-12)
        own = inertia.diff(q1) * v1**2 / 2 + potential.diff(q1)
        assert float(bias.subs(at).subs(angles).subs(here)) == pytest.approx(
            float(own.subs(here)), rel=1e-10, abs=1e-12
        )


# --- what is printed ---


def test_the_two_link_arm_in_full():
    said = text_lines(derivation("two_link", frames=["forearm"]))
    assert "\n".join(said) == TWO_LINK


def test_the_probe_of_the_measuring_arm_in_closed_form():
    """One formula for each coordinate, of the angles alone; by products of exponentials see tests/rig."""
    d = derivation("mechanisms/measuring_arm", frames=["probe"])
    steps, elements = by_component(d, text_rows(d, text_lines(d)))["position_probe"]
    assert steps == []
    assert {str(s) for f in elements.values() for s in f.free_symbols} == {f"q{k}" for k in range(1, 7)}
    for state in states(d, 5):
        values = {f"q{k}": x for k, x in enumerate(state["q"], 1)}
        found = [number(elements[k,], values) for k in (1, 2, 3)]
        assert found == pytest.approx(d.model.frame_pose(state["q"], "probe")[:3, 3], abs=1e-14)


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
