"""The equations by symbols equal the textbooks', written by hand, formula by formula."""

import sympy

from cosim.apps.derive.equations.components import derived
from cosim.apps.derive.equations.parameters import with_symbols
from cosim.apps.derive.plant_model import read_model
from tests.derive.equations.derivations import OWN
from tests.derive.equations.reading import formulas, read_text, same, vanishes


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
        {(1,): (m1 * lc1 + m2 * l1) * g * cos(q1) + m2 * lc2 * g * cos(q1 + q2), (2,): m2 * lc2 * g * cos(q1 + q2)},
    )
    same(found["viscous_friction"], {(1,): b1 * v1, (2,): b2 * v2})


def test_the_load_of_the_two_link_arm():
    """The Jacobian of the elbow by hand: a force there turns the shoulder alone, a moment both."""
    l1, q1, f1, f2, f6 = sympy.symbols("l_elbow q1 f1 f2 f6")
    found = formulas("two_link", load="forearm")["load"]
    same(found, {(1,): -l1 * sympy.sin(q1) * f1 + l1 * sympy.cos(q1) * f2 + f6, (2,): f6})


def test_angles_about_opposite_axes_are_subtracted():
    model = read_model(OWN / "scara.yaml")
    equations, parameters = with_symbols(model.equations)
    d = derived(model, equations, ["tool"], parameters=parameters)
    (_, position), (_, pose) = (read_text(d)[name] for name in ("position_tool", "pose_tool"))
    assert str(position[1,]) == "l_j2*cos(q1) + l_j3*cos(q1 + q2) + l_tool*cos(q1 + q2 - q4)"
    assert str(pose[1, 1]) == "cos(q1 + q2 - q4)"


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
        assert vanishes(total - effort.subs(plain))
    same(found["viscous_friction"], {(1,): b * v1})


def test_the_slider_crank_with_its_loop():
    """The open chain by hand, and the closing vector equation of crank, rod and slide."""
    I1, I2, m1, m2, m3, c1, c2, r, rod, g, q1, q2, q3, v1, v2 = sympy.symbols(
        "I_crank_zz I_rod_zz m_crank m_rod m_piston c_crank c_rod l_rod l_wrist_pin_rod g q1 q2 q3 v1 v2"
    )
    found, cos, sin = formulas("mechanisms/slider_crank"), sympy.cos, sympy.sin
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
    same(found["constraint_residual"], {(k,): row for k, row in enumerate(close, 1)})
    jacobian = {(k, j): row.diff(q) for k, row in enumerate(close, 1) for j, q in enumerate((q1, q2, q3), 1)}
    same(found["constraint_jacobian"], {place: entry for place, entry in jacobian.items() if entry != 0})
    pairs = [(x, vx, y, vy) for x, vx in ((q1, v1), (q2, v2)) for y, vy in ((q1, v1), (q2, v2))]
    turned = [sum(row.diff(x, y) * vx * vy for x, vx, y, vy in pairs) for row in close]
    same(found["constraint_bias"], {(k,): -row for k, row in enumerate(turned, 1)})


def test_the_slider_crank_in_the_crank_angle():
    """J(φ) φ̈ + ½ J'(φ) φ̇² + V'(φ) = τ, the equation of machines with one degree of freedom, with λ = r/l and
    sin ψ = −λ sin φ: from the equations of the tree and of the loop, projected on the motion which the loop allows."""
    I1, I2, m1, m2, m3, c1, c2, r, rod, g, phi, q2, v1, v2 = sympy.symbols(
        "I_crank_zz I_rod_zz m_crank m_rod m_piston c_crank c_rod l_rod l_wrist_pin_rod g q1 q2 v1 v2"
    )
    cos, sin, ratio = sympy.cos, sympy.sin, r / rod
    S = -ratio * sin(phi)  # of the angle ψ of the rod against the slide
    C = sympy.sqrt(1 - ratio**2 * sin(phi) ** 2)
    turning = -ratio * cos(phi) / C  # ψ' = dψ/dφ
    # the textbook: squares of the velocities of masses and turning bodies, per φ̇²
    stroke = r * sin(phi) + rod * S * turning  # −x' of the piston
    centre = [r * sin(phi) + c2 * S * turning, r * cos(phi) * (1 - c2 / rod)]  # −x', y' of the rod's centre of mass
    J = I1 + m1 * c1**2 + m2 * (centre[0] ** 2 + centre[1] ** 2) + I2 * turning**2 + m3 * stroke**2
    weight = g * (m1 * c1 + m2 * r * (1 - c2 / rod)) * cos(phi)
    crank = formulas("mechanisms/slider_crank")
    # what is derived, with q2 = ψ − φ, and q̇ = along·φ̇
    closed = {
        cos(phi + q2): C, sin(phi + q2): S, cos(q2): C * cos(phi) + S * sin(phi), sin(q2): S * cos(phi) - C * sin(phi)
    }  # fmt: skip
    found = {name: {at: f.xreplace(closed) for at, f in e.items()} for name, e in crank.items()}
    H = [[found["constraint_jacobian"].get((row, j), 0) for j in (1, 2, 3)] for row in (1, 2)]
    along = [1, -H[1][0] / H[1][1], 0]  # the second row has no slide
    along[2] = H[0][0] + H[0][1] * along[1]  # the first one has it with −1
    M = {(i, j): found["mass_matrix"].get((min(i, j), max(i, j)), 0) for i in (1, 2, 3) for j in (1, 2, 3)}
    inertia = sum(along[i - 1] * M[i, j] * along[j - 1] for i, j in M)
    assert vanishes(inertia - J)
    bends = [sympy.diff(x, phi) for x in along]
    forces = [found["coriolis"].get((k,), 0).subs(v2, along[1] * v1) for k in (1, 2)]
    bias = sum(along[k] * forces[k] for k in (0, 1)) + sum(along[i - 1] * M[i, j] * bends[j - 1] for i, j in M) * v1**2
    assert vanishes(bias - J.diff(phi) * v1**2 / 2)
    assert vanishes(sum(along[k] * found["gravity"][k + 1,] for k in (0, 1)) - weight)
