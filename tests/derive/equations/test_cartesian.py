"""The printed Cartesian equations, solved at random states, move and load every mechanism as its model says."""

import re

import casadi
import numpy as np
import pytest
import sympy
from sympy.parsing.sympy_parser import parse_expr

from cosim.apps.derive.comparison import consistent_states
from cosim.apps.derive.equations.cartesian import cartesian_derivation
from cosim.apps.derive.equations.command import without_redundant
from cosim.apps.derive.equations.latex import latex_lines
from cosim.apps.derive.equations.parameters import with_symbols
from cosim.apps.derive.equations.text import text_lines
from cosim.apps.derive.plant_model import read_model
from cosim.mechanics.formulations import load_formulation
from cosim.mechanics.formulations.cartesian.assembled import CentralFrame
from tests.derive.equations.derivations import RIGS, python_code
from tests.derive.equations.reading import compiled, read_text
from tests.kit.latex_formulas import equations as latex_equations

TOLERANCE = 1e-10
TREES = [
    "two_link", "cart_pole", "robots/ur5.urdf", "mechanisms/floating_chain", "mechanisms/platform",
    "mechanisms/stick_slip", "mechanisms/hoist", "mechanisms/measuring_arm", "mechanisms/arm_on_moving_base",
    "mechanisms/coupled_wrist",
]  # fmt: skip
LOOPS = [
    f"mechanisms/{name}"
    for name in ("slider_crank", "four_bar", "andrews", "parallelogram", "solar_linkage", "skate", "rolling_wheel",
                 "point_pendulum", "car_axis", "flyball_governor", "swinging_cylinder", "grab_jaw")
]  # fmt: skip
READ = ["two_link"] + [f"mechanisms/{name}" for name in ("slider_crank", "hoist", "solar_linkage", "coupled_wrist")]


class Solved:
    """A printed system, and what it says in states of its mechanism."""

    def __init__(self, name, symbols=False):
        path = RIGS / (name if name.endswith(".urdf") else f"{name}.yaml")
        self.model = without_redundant(read_model(path))
        stage, parameters = with_symbols(self.model.equations) if symbols else (self.model.equations, [])
        self.d = cartesian_derivation(self.model, stage, parameters)
        self.system = load_formulation("cartesian", self.model.equations.without_coupled_rotors)
        self._functions = {}

    def states(self):
        """(q, v, tau, t, inputs of the terms)"""
        t = 0.3 if self.model.timed else 0.0
        model, found = consistent_states(self.model) if not t else (self.model, self._timed_states(t))
        assert model.equations.constraints.redundant == self.model.equations.constraints.redundant
        for q, v, tau in found[:3]:
            yield q, v, tau, t, self.inputs(q, v, tau, t)

    def _timed_states(self, t):
        from cosim.mechanics.multibody import assembly

        rng, free = np.random.default_rng(3), np.zeros(self.model.nv, dtype=bool)
        q = assembly.close_loops(self.model, self.model.random_configuration(rng), free, t)
        v = assembly.consistent_velocities(self.model, q, rng.uniform(-1, 1, self.model.nv), free, t)
        return [(q, v, rng.uniform(-5, 5, self.model.nv))]

    def frames(self, q, v, t):
        placed = self.system.placements(q, v, t)
        return [CentralFrame.of(here, body.com) for here, body in zip(placed, self.system.sweeps.bodies, strict=True)]

    def inputs(self, q, v, tau, t):
        e, basis = self.model.equations, self.d.cartesian.basis
        r, w, A = [], [], []
        start = self.system.placements(e.coordinates(np.zeros(e.nv)))
        for frame, still in zip(self.frames(q, v, t), start, strict=True):
            axes, spin = frame.placement.rotation, frame.placement.angular
            if basis is None:
                r, w = [*r, *frame.center], [*w, *frame.center_velocity, *(axes.T @ spin)]
                A += list(axes.ravel())
            else:
                turned = basis.T @ axes @ still.rotation.T @ basis
                r += [*(basis[:, :2].T @ frame.center), np.arctan2(turned[1, 0], turned[0, 0])]
                w += [*(basis[:, :2].T @ frame.center_velocity), basis[:, 2] @ spin]
        given = {"r": r, "w": w, "A": A, "q": e.q_map.positions(q), "v": e.v_map.expand(v), "tau": tau, "t": [t]}
        given["p"] = [p.value for p in self.d.parameters]
        given = {key: np.asarray(value, dtype=float) for key, value in given.items()}
        given["u"] = self.value("efforts", given)
        return {key: given[key] for key in self.d.inputs}

    def value(self, name, given):
        c = next((c for c in self.d.everything if c.name == name), None)
        if c is None:
            return 0.0
        if name not in self._functions:
            self._functions[name] = casadi.Function("f", [self.d.inputs[a] for a in c.arguments], [c.entries])
        return np.asarray(self._functions[name].call([given[a] for a in c.arguments])[0]).reshape(c.shape)

    def solution(self, given):
        """(a, λ)"""
        found = np.linalg.solve(self.value("descriptor_matrix", given), self.value("descriptor_right_side", given))
        n = len(self.d.cartesian.accelerations)
        return found[:n], -found[n:]

    def along(self, name, given, a):
        """The rate of a term: by the motion of the bodies with the accelerations a, and by time."""
        c, s = next((c for c in self.d.everything if c.name == name), None), self.d.cartesian.size
        if c is None:
            return np.zeros(len(self.d.cartesian.rows))
        w = given["w"].reshape(-1, s)
        rates = {"w": a, "t": [1.0]}
        if s == 3:
            rates["r"] = given["w"]
        else:
            rates["r"] = w[:, :3].ravel()
            rates["A"] = np.concatenate(
                [
                    (A.reshape(3, 3) @ _skew(spin)).ravel()
                    for A, spin in zip(given["A"].reshape(-1, 9), w[:, 3:], strict=True)
                ]
            )
        e = self.model.equations
        if "q" in c.arguments:
            moved = np.concatenate(
                [k.space.rate(q, v) for k, q, v in zip(e.tree.kinds, *self._split(given), strict=True)]
            )
            rates["q"] = moved
        if "v" in c.arguments:
            rates["v"] = self.along("joint_rates", given, a)
        total = np.zeros(c.entries.numel())
        for key in c.arguments:
            if key in rates:
                slope = casadi.jacobian(c.entries, self.d.inputs[key])
                f = casadi.Function("f", [self.d.inputs[k] for k in c.arguments], [slope])
                total += np.asarray(f(*(given[k] for k in c.arguments))) @ np.asarray(rates[key])
        return total

    def _split(self, given):
        e = self.model.equations
        q = np.split(given["q"], np.cumsum([k.nq for k in e.tree.kinds])[:-1])
        v = np.split(self.value("joint_rates", given), np.cumsum([k.nv for k in e.tree.kinds])[:-1])
        return q, v


def _skew(w):
    return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])


def close(found, expected, tolerance=TOLERANCE):
    scale = max(1.0, np.abs(expected).max(initial=0.0))
    assert np.abs(np.asarray(found) - expected).max(initial=0.0) <= tolerance * scale


def timed(model, t):
    return [t] if model.timed else []


@pytest.mark.parametrize("symbols", [False, True])
@pytest.mark.parametrize("name", [*TREES, *LOOPS])
def test_accelerations_and_reactions_are_those_of_the_model(name, symbols):
    s = Solved(name, symbols)
    model, e = s.model, s.model.equations
    for q, v, tau, t, given in s.states():
        a, multipliers = s.solution(given)
        whole = tau - model.friction_effort(v)
        expected = model.forward_dynamics(q, v, whole, *timed(model, t))
        close(s.value("joint_rates", given), e.v_map.expand(v))
        rates = s.along("joint_rates", given, a) if s.d.kinematics else np.zeros(0)
        close(rates, e.v_map.expand(expected))
        wrenches = model.joint_wrenches(q, v, whole, *timed(model, t))
        # the rows of rotors on several joints act on all of these
        if not e.tree.rotors and not any(joint.mimic for joint in e.tree.joints):
            for k, wrench in enumerate(_wrenches(s, given, multipliers, s.frames(q, v, t))):
                directions = _in_the_plane(s, q, v, t, k)
                close(directions @ wrench, directions @ wrenches[k], 1e-9)


def _wrenches(s, given, multipliers, frames):
    """Of each joint on its body, as `Model.joint_wrenches`."""
    size, basis = s.d.cartesian.size, s.d.cartesian.basis
    G, D = s.value("constraint_jacobian", given), s.value("effort_directions", given)
    row = dof = 0
    for k, (joint, frame) in enumerate(zip(s.system.joints, frames, strict=True)):
        rows, dofs, here = range(row, row + joint.rows), range(dof, dof + joint.nv), slice(size * k, size * (k + 1))
        row, dof = row + joint.rows, dof + joint.nv
        force = np.zeros(size)
        if len(rows):
            force = force + G[rows, here].T @ multipliers[rows]
        if np.ndim(D) and len(dofs):
            force = force + D[here, dofs] @ given["u"][dofs]
        axes = frame.placement.rotation
        linear, moment = (
            (force[:3], axes @ force[3:]) if basis is None else (basis[:, :2] @ force[:2], basis[:, 2] * force[2])
        )
        moment = moment + np.cross(frame.center - frame.placement.position, linear)
        parent = s.system.sweeps.parents[k]
        base = np.eye(3) if parent < 0 else frames[parent].placement.rotation
        base = base @ s.system.sweeps.bodies[k].rotation
        yield np.concatenate([base.T @ linear, base.T @ moment])


def _in_the_plane(s, q, v, t, k):
    """The components of a wrench that the system has: all in space, three in a plane."""
    basis = s.d.cartesian.basis
    if basis is None:
        return np.eye(6)
    parent, placed = s.system.sweeps.parents[k], s.system.placements(q, v, t)
    base = (np.eye(3) if parent < 0 else placed[parent].rotation) @ s.system.sweeps.bodies[k].rotation
    local = base.T @ basis
    none = np.zeros(3)
    return np.array([[*local[:, 0], *none], [*local[:, 1], *none], [*none, *local[:, 2]]])


@pytest.mark.parametrize("name", [*TREES, *LOOPS])
def test_each_level_of_the_constraints_is_the_derivative_of_the_one_before(name):
    s = Solved(name)
    rng = np.random.default_rng(2)
    names = {c.name for c in s.d.everything}
    for _, _, _, _, given in s.states():
        a, _ = s.solution(given)
        assert np.abs(s.value("constraint_residual", given)).max(initial=0.0) < 1e-8
        assert np.abs(s.value("constraint_rate", given)).max(initial=0.0) < 1e-8
        if "constraint_rate" not in names:
            continue
        constraints = np.flatnonzero([row.is_constraint for row in s.d.cartesian.rows])
        close(s.along("constraint_rate", given, a)[constraints], 0.0 * constraints, 1e-7)
        if "q" in given or "v" in given:  # these follow from the bodies, so they cannot be disturbed alone
            continue
        moved = given | {"w": given["w"] + rng.uniform(-1, 1, len(given["w"]))}
        change = s.value("constraint_rate", moved) - s.value("constraint_rate", given)
        close(change, s.value("constraint_jacobian", given) @ (moved["w"] - given["w"]))
        holonomic = [k for k in constraints if _has_residual(s, k)]
        close(s.along("constraint_residual", moved, a)[holonomic], s.value("constraint_rate", moved)[holonomic], 1e-7)


def _has_residual(s, k):
    return (
        "constraint_residual" in {c.name for c in s.d.components}
        and not s.d.component("constraint_residual").entries[int(k)].is_zero()
    )


def _named(s, given):
    values = {name: x for key, names in s.d.names.items() for name, x in zip(names, given[key], strict=True)}
    return values | {p.name: p.value for p in s.d.parameters} | {"t": float(given["t"][0]) if "t" in given else 0.0}


@pytest.mark.parametrize("name", READ)
def test_the_text_read_back_balances_every_body_and_every_joint(name):
    """The terms, and the equations in which these stand by their names, as printed."""
    s = Solved(name, symbols=True)
    lines, parsed = text_lines(s.d), read_text(s.d)
    for _, _, _, _, given in list(s.states())[:1]:
        values, known = _named(s, given), {}
        a, multipliers = s.solution(given)
        for component, (steps, elements) in parsed.items():
            c, found = s.d.component(component), np.zeros(s.d.component(component).shape)
            for place, x in compiled(steps, elements)(values).items():
                at = tuple(k - 1 for k in place)
                found[at] = x
                known[f"{c.letter}_{'_'.join(map(str, place))}"] = x
            close(found, s.value(component, given), 1e-11)
        values |= known | dict(zip(s.d.cartesian.accelerations, a, strict=True))
        values |= {f"lambda{k}": x for k, x in enumerate(multipliers, 1)}
        written = [match for line in lines if (match := re.match(r"    ([a-z ]+): +(.+) = (.+)$", line))]
        assert len(written) >= len(a) + len(multipliers)
        for match in written:
            left, right = (_value(side, values) for side in match.groups()[1:])
            assert abs(left - right) < 1e-8 * max(1.0, abs(left)), match[0]


def _value(text, values):
    text = re.sub(r"([A-Za-z]+)\[([\d,]+)\]", lambda m: f"{m[1]}_{m[2].replace(',', '_')}", text)
    names = set(re.findall(r"[A-Za-z_]\w*", text)) - {"sin", "cos", "sqrt", "abs", "sign"}
    words = {name: sympy.Symbol(f"z_{k}") for k, name in enumerate(sorted(names))}
    formula = parse_expr(
        text.replace("lambda", "lambda_"), {n.replace("lambda", "lambda_"): x for n, x in words.items()}
    )
    return float(formula.subs({words[name]: values[name] for name in names}).evalf())


def test_latex_has_the_equations_of_every_body_joint_and_the_matrix():
    s = Solved("mechanisms/slider_crank", symbols=True)
    text = "\n".join(latex_lines(s.d))
    rows = latex_equations(text)
    assert text.count(r"\begin{align*}") == text.count(r"\end{align*}") and len(list(rows)) > 50
    assert r"a_{x,1} m_{\mathrm{crank}} &= " in text
    matrix = text.split(r"\begin{bmatrix}")[-3].split(r"\end{bmatrix}")[0].strip().splitlines()
    assert [row.count("&") for row in matrix] == [16] * 17


def test_code_computes_the_same(tmp_path):
    s = Solved("mechanisms/slider_crank", symbols=True)
    code = python_code(s.d, tmp_path)
    given = next(s.states())[-1]
    for name, found in code(given).items():
        close(found.ravel(), np.asarray(s.value(name, given)).ravel(), 1e-12)


def test_the_command(command, said):
    out = command.prints("derive", RIGS / "two_link.yaml", "--equations", "--formulation", "cartesian")
    assert "Descriptor matrix [M G^T; G -C], 10 x 10" in out
    for words in (["cartesiann"], ["kane"], ["cartesian", "--load", "forearm"]):
        said(command.refuses("derive", RIGS / "two_link.yaml", "--equations", "--formulation", *words))
    elastic = RIGS / "elastic" / "cantilever.yaml"
    said(command.refuses("derive", elastic, "--equations", "--formulation", "cartesian"))


@pytest.mark.parametrize("more", [(), ("--formulation", "cartesian"), ("--to", "c")])
def test_a_base_that_is_moved_through_points_has_no_formula(command, said, tmp_path, more):
    given = (RIGS / "mechanisms" / "arm_on_moving_base.yaml").read_text(encoding="utf-8")
    sine = "x: {type: sine, amplitude: 20 cm, frequency: 0.5 Hz}"
    assert sine in given
    points = "x: {type: spline, points: [10 cm, 0 cm], times: [1 s, 2 s]}"
    (tmp_path / "rig.yaml").write_text(given.replace(sine, points), encoding="utf-8")
    said(command.refuses("derive", "rig.yaml", "--equations", *more))
