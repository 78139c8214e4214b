"""Breaks of given functions of time: steps end there, and velocities that jump give their impulse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from cosim import Rig
from cosim.core import ops
from cosim.plugins import trajectories
from cosim.simulation.plant.impacts import Impacts
from tests.kit.refusals import refusal
from tests.kit.rigs import rig_in

M, L, J = 1.0, 0.5, 0.02  # of a pendulum on a cart of 2 kg
HINGE_INERTIA = J + M * L**2
G = 9.81
TRAPEZOIDAL = {
    "type": "trapezoidal",
    "goal": 0.3,
    "max_velocity": "0.7 m/s",
    "max_acceleration": "3.1 m/s^2",
    "delay": "100.37 ms",
}
# it starts and ends moving, at no end of a step
NATURAL = {"type": "spline", "points": [0.3, 0.1], "times": ["300.7 ms", "711.3 ms"], "ends": "natural", "degree": 3}
CART = {"name": "cart", "type": "prismatic", "axis": [1, 0, 0], "mass": 2.0}
SLIDER = {"name": "slider", "type": "prismatic", "axis": [1, 0, 0], "mass": 1.0}
PENDULUM = {"name": "pendulum", "axis": [0, 1, 0], "mass": M, "com": [0, 0, -L], "inertia": [J] * 3}
INTEGRATORS = {"semi_implicit_euler": 1, "rk4": 4, "rosenbrock": 2, "rodas4": 4, "multirate": 2, "moreau": 2}


def carried(what: dict[str, Any], given: dict[str, Any], by: str = "joint", **more: Any) -> dict[str, Any]:
    """The rig of a body that a cart with a given motion carries: a prescribed joint, or a moving base."""
    mechanism: dict[str, Any] = {"bodies": [what], **more.pop("mechanism", {})}
    joints = more.pop("joints", {})
    if by == "joint":
        mechanism["bodies"] = [CART, what]
        joints = {"cart": {"prescribed": given}, **joints}
    else:
        mechanism["moving_base"] = {"x": given}
    schedule = {"step": "1 ms", "duration": "1.2 s", "integrator": "rk4"} | more.pop("schedule", {})
    return {"mechanism": mechanism, "joints": joints, "schedule": schedule, **more}


def still(given: dict[str, Any], **schedule: Any) -> dict[str, Any]:
    """A slider without friction on a cart that moves: it stays where it is."""
    return carried(SLIDER, given, mechanism={"gravity": [0, 0, 0]}, schedule=schedule)


def swinging(given: dict[str, Any], by: str = "joint", **schedule: Any) -> dict[str, Any]:
    return carried(PENDULUM, given, by, joints={"pendulum": {"initial": {"position": 0.3}}}, schedule=schedule)


# --- steps end at breaks ---


@pytest.mark.parametrize("integrator", [name for name, order in INTEGRATORS.items() if order > 1])
@pytest.mark.parametrize(("step", "interpret"), [("1 ms", False), ("100 ms", True), ("600 ms", False)])
def test_what_nothing_holds_stays_in_space(integrator: str, step: str, interpret: bool) -> None:
    """The accelerations are polynomials between breaks, so the only errors are of rounding."""
    rig = Rig.from_dict(still(TRAPEZOIDAL, step=step, integrator=integrator), interpret=interpret)
    run = rig.run()
    np.testing.assert_allclose(run["slider/position"] + run["cart/position"], 0.0, atol=1e-12)
    np.testing.assert_allclose(run["slider/velocity"] + run["cart/velocity"], 0.0, atol=1e-12)
    assert abs(run.summary["energy"]["residual"]) < 1e-12


def test_steps_of_chosen_length_end_at_breaks() -> None:
    """Five steps, one more for each break; and none is refused."""
    run = Rig.from_dict(still(TRAPEZOIDAL, step="200 ms", integrator="rodas4", substeps="auto", tolerance=1e-9)).run()
    assert abs(run["slider/position"][-1] + run["cart/position"][-1]) < 1e-12
    assert run["steps/total"][-1] == 6 + 4


@pytest.mark.parametrize("between", ["rest", "monotone", "spline"])
@pytest.mark.parametrize("step", ["1 ms", "20 ms"])
def test_many_breaks_in_a_step(tmp_path, between: str, step: str) -> None:
    """Rows of a file every 1 ms to 6 ms: steps have one break at most, or up to nine."""
    rng = np.random.default_rng(0)
    times, positions = np.cumsum(rng.uniform(0.001, 0.006, 200)), 1e-3 * np.cumsum(rng.uniform(-1.0, 1.0, 200))
    rows = "".join(f"{t!r},{x!r}\n" for t, x in zip(times.tolist(), positions.tolist(), strict=True))
    (tmp_path / "rows.csv").write_text(f"t,cart\n0,0\n{rows}")
    rig = Rig.from_dict(still({"type": "waypoints", "file": str(tmp_path / "rows.csv"), "between": between}, step=step))
    assert rig.plant.breaks.most_within(rig.tick_model.step) == {"1 ms": 1, "20 ms": 9}[step]
    run = rig.run()
    np.testing.assert_allclose(run["slider/position"] + run["cart/position"], 0.0, atol=1e-11)


def of_cart(rig: Rig, t: float) -> tuple[float, float]:
    """(velocity, acceleration) of the cart or the base."""
    if rig.plant.prescribed:
        sample = rig.plant.prescribed["cart"].sample(t)
        return sample["velocity"][0], sample["acceleration"][0]
    _, velocity, acceleration = rig.plant.mechanism.joints[0].motion.sample(t)
    return velocity[0], acceleration[0]


def swing(rig: Rig, end: float) -> np.ndarray:
    """(angle, velocity) of the pendulum at a time: J₀ φ̈ = m l (a cos φ − g sin φ) between the breaks, and
    J₀ Δω = m l cos φ Δv at each."""
    breaks = rig.plant.breaks
    inside = (breaks.before < end) & (breaks.before > 0.0)
    begins, ends = np.array([1e-12, *breaks.after[inside]]), np.array([*breaks.before[inside], end])
    state = np.array([0.3, 0.0])
    for k, (begin, until) in enumerate(zip(begins, ends, strict=True)):
        if k:
            jump = of_cart(rig, begin)[0] - of_cart(rig, ends[k - 1])[0]
            state[1] += M * L * np.cos(state[0]) * jump / HINGE_INERTIA

        def flow(t: float, y: np.ndarray, begin: float = begin, until: float = until) -> list[float]:
            pull = of_cart(rig, float(np.clip(t, begin, until)))[1]
            return [y[1], M * L * (pull * np.cos(y[0]) - G * np.sin(y[0])) / HINGE_INERTIA]

        state = solve_ivp(flow, (begin, until), state, "DOP853", rtol=1e-13, atol=1e-14).y[:, -1]
    return state


@pytest.mark.parametrize("by", ["joint", "base"])
@pytest.mark.parametrize("given", [TRAPEZOIDAL, NATURAL], ids=lambda given: given["type"])
def test_the_order_of_integrators_across_breaks(given: dict[str, Any], by: str) -> None:
    exact = None
    for integrator, order in INTEGRATORS.items():
        errors = []
        for step in ("10 ms", "5 ms"):
            rig = Rig.from_dict(swinging(given, by, step=step, integrator=integrator))
            exact = swing(rig, 1.2) if exact is None else exact
            run = rig.run()
            errors.append(np.abs([run["pendulum/position"][-1], run["pendulum/velocity"][-1]] - exact).max())
        assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.15), integrator
        assert errors[1] < {1: 3e-2, 2: 3e-4, 4: 1e-8}[order]


# --- velocities that jump ---

SPEED, JUMP = 0.8, 1.999e-3  # m/s, s
# a user's trajectory that stays, and moves with a constant velocity from a time on
STARTS = """
import numpy as np
from cosim.plugin import ops, param, params

@params
class Params:
    at: float = param(unit="s")
    late: bool = param(default=False, doc="whether it counts the instant to the time before")

class Starts:
    end = np.inf

    def __init__(self, at, late, start):
        self.at, self.late, self.start, self.breaks = at, late, start, [at]

    def sample(self, t):
        moves = ops.where(t > self.at if self.late else t >= self.at, 1.0, 0.0)
        position, velocity = self.start + moves * SPEED * (t - self.at), moves * SPEED * np.ones(1)
        return {"position": position, "velocity": velocity, "acceleration": np.zeros(1), "effort": np.zeros(1)}

def load(params, joints, folder, start):
    return Starts(params.at, params.late, start)
"""


def starts(folder: Path, at: float, **more: Any) -> dict[str, Any]:
    """The section of `STARTS`."""
    (folder / "starts.py").write_text(STARTS.replace("SPEED", str(SPEED)))
    return {"type": str(folder / "starts.py"), "at": at, **more}


@pytest.mark.parametrize("by", ["joint", "base"])
def test_the_impulse_on_a_pendulum(by: str) -> None:
    """J₀ Δω = m l cos φ Δv; its work is the impulse on cart and pendulum times the mean velocity of the cart."""
    rig = Rig.from_dict(swinging(NATURAL, by, step="0.1 ms", duration="712 ms"))
    run = rig.run()
    k = int(np.searchsorted(run.t, 0.7113 - 1e-9))  # the step ends at the break, behind the jump
    angle, speed = run["pendulum/position"], run["pendulum/velocity"]
    stop = of_cart(rig, 0.7113 * (1.0 - 1e-14))[0]
    jump = -M * L * np.cos(angle[k]) * stop / HINGE_INERTIA
    assert abs(jump) > 0.3
    before = speed[k - 1] + 1e-4 * run["pendulum/acceleration"][k - 1]
    assert speed[k] - before == pytest.approx(jump, abs=1e-6)
    cart = 2.0 if by == "joint" else 0.0  # what the base weighs is not part of the mechanism
    impulse = (cart + M) * -stop - M * L * np.cos(angle[k]) * jump
    works = run["energy/work"][k - 2 : k + 1]
    work = np.diff(works, 2)[0]  # of the step with the jump, less what the step before it took
    assert work == pytest.approx(impulse * 0.5 * stop, rel=1e-4)
    assert abs(run.summary["energy"]["residual"]) < 1e-10


def dense_jump(rig: Rig, jump: np.ndarray) -> np.ndarray:
    """Δv (nv,) at the start of a rig from all equations at once: those of momentum of dofs that are free, the jump
    (nv,) of those that are prescribed, and the constraints."""
    model, q = rig.plant.model, rig.plant.start.q
    mass, free = np.asarray(model.mass_matrix(q)), rig.plant.unprescribed
    G = np.asarray(model.equations.constraint_jacobian(q)).reshape(-1, model.nv)
    rows = np.where(free[:, None], mass, np.eye(model.nv))
    forces = np.where(free[:, None], -G.T, 0.0)
    matrix = np.block([[rows, forces], [G, np.zeros((len(G), len(G)))]])
    right = np.concatenate([np.where(free, 0.0, jump), np.zeros(len(G))])
    return np.linalg.lstsq(matrix, right, rcond=1e-12)[0][: model.nv]


TREE = {
    "gravity": [0, 0, 0],
    "bodies": [
        CART,
        {**PENDULUM, "axis": [0.2, 0.9, 0.3]},
        {"name": "arm", "parent": "pendulum", "axis": [1, 0, 0.4], "origin": {"xyz": [0.1, 0, -0.6]}, "mass": 0.7,
         "com": [0, 0.2, -0.1], "inertia": [0.02, 0.03, 0.01]},
        {"name": "side", "parent": "cart", "axis": [0, 0, 1], "mass": 0.4, "com": [0.3, 0.1, 0],
         "inertia": [0.01, 0.01, 0.01]},
    ],
}  # fmt: skip
FLOATING = {
    "gravity": [0, 0, 0],
    "bodies": [
        {"name": "hull", "type": "free", "mass": 5.0, "com": [0.05, 0.1, -0.02], "inertia": [0.2, 0.3, 0.4]},
        {**CART, "parent": "hull", "axis": [0.6, 0, 0.8], "origin": {"xyz": [0.2, 0.1, 0.3]}},
        {**PENDULUM, "parent": "cart"},
    ],
}
ELASTIC = "rigs/elastic/two_link_arm.yaml"
BAR = {"mass": 1.0, "com": [0.2, 0, 0], "inertia": [0.01, 0.01, 0.01]}
# a parallelogram of bars that stands on a cart, so that it is free to move when the cart jumps
LOOP = {
    "gravity": [0, 0, 0],
    "bodies": [
        CART,
        {"name": "A", "parent": "cart", **BAR},
        {"name": "B", "parent": "A", "origin": {"xyz": [0.4, 0, 0]}, **BAR},
        {"name": "C", "parent": "cart", "origin": {"xyz": [0.5, 0, 0]}, **BAR},
    ],
    "loops": [
        {"name": "pin", "parent": "C", "child": "B", "origin": {"xyz": [0.45, 0, 0]},
         "child_origin": {"xyz": [0.5, 0, 0]}}
    ],
}  # fmt: skip
LOOP_START = {"A": {"initial": {"position": "60 deg"}}, "B": {"initial": {"guess": "-60 deg"}},
              "C": {"initial": {"guess": "60 deg"}}}  # fmt: skip
# two wheels with their masses beside their axles
GEARED = {
    "gravity": [0, 0, 0],
    "bodies": [
        CART,
        {"name": "wheel", "parent": "cart", "axis": [0, 0, 1], "mass": 1.0, "com": [0.1, 0, 0], "inertia": [0.1] * 3},
        {"name": "pinion", "parent": "cart", "axis": [0, 0, 1], "mass": 1.0, "com": [0, 0.2, 0], "inertia": [0.1] * 3},
    ],
    "constraints": [{"name": "mesh", "type": "gear", "joints": ["wheel", "pinion"], "ratio": -2.0}],
}


@pytest.mark.parametrize(
    ("mechanism", "start"),
    [(TREE, {}), (FLOATING, {}), (LOOP, LOOP_START), (GEARED, {})],
    ids=["tree", "floating", "loop", "gear"],
)
def test_the_impulse_on_mechanisms(tmp_path, mechanism: dict[str, Any], start: dict[str, Any]) -> None:
    """Nothing moves until the cart jumps 1 µs before the end of a step: then all velocities are those of the
    impulse."""
    joints = {"cart": {"prescribed": starts(tmp_path, JUMP)}, **start}
    schedule = {"step": "2 ms", "duration": "2 ms", "integrator": "rk4"}
    rig = Rig.from_dict({"mechanism": mechanism, "joints": joints, "schedule": schedule})
    run, model = rig.run(), rig.plant.model
    jump = np.zeros(model.nv)
    jump[model.dof_index("cart")] = SPEED
    expected = dense_jump(rig, jump)
    assert np.abs(expected).min() < np.abs(expected).max()
    found = np.array([run[f"{name}/velocity"][-1] for name in model.dof_names])
    np.testing.assert_allclose(found, expected, atol=3e-6)  # of the microsecond behind the jump
    kinetic = 0.5 * expected @ np.asarray(model.mass_matrix(rig.plant.start.q)) @ expected
    assert run["energy/work"][-1] == pytest.approx(kinetic, rel=1e-4)
    assert abs(run.summary["energy"]["residual"]) < 1e-10 * kinetic


@pytest.mark.parametrize("late", [False, True])
def test_an_initial_velocity_is_the_one_behind_a_jump_at_the_start(tmp_path, late: bool) -> None:
    """To which side a function counts the instant itself does not matter."""
    rig = Rig.from_dict(still(starts(tmp_path, 0.0, late=late), duration="10 ms"))
    assert rig.plant.start.v[0] == SPEED
    assert rig.run()["slider/velocity"][-1] == 0.0


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(("at", "interpret"), [(2e-3, False), (3.3e-3, True)])
def test_a_jump_is_seen_from_both_sides(tmp_path, at: float, interpret: bool, late: bool) -> None:
    run = Rig.from_dict(still(starts(tmp_path, at, late=late), duration="10 ms"), interpret=interpret).run()
    assert run["slider/velocity"][-1] == pytest.approx(-SPEED, abs=1e-14)
    assert run["slider/position"][-1] == pytest.approx(-SPEED * (0.01 - at), abs=1e-14)


def test_elastic_links_get_the_impulse(tmp_path) -> None:
    """The shoulder of an arm with elastic links jumps: the modes and the elbow move as the dense equations say."""
    text = Path(ELASTIC).read_text().split("joints:\n")[0]
    shoulder = f"joints:\n  shoulder: {{prescribed: {starts(tmp_path, JUMP)}}}\n"
    rig = rig_in(tmp_path, f"{text}{shoulder}schedule: {{step: 2 ms, integrator: rodas4}}\n")
    plant, breaks, jump = rig.plant, rig.plant.breaks, np.zeros(rig.plant.model.nv)
    jump[plant.model.dof_index("shoulder")] = SPEED
    impacts, start = Impacts(plant, 1e-3, compiled=False), plant.layout.pack(plant.initial())
    after = plant.layout.unpack(impacts.jump_routine(breaks.before[0], breaks.after[0], start))
    expected = dense_jump(rig, jump)
    assert np.abs(expected[plant.model.elastic_dofs]).max() > 0.1
    np.testing.assert_allclose(after["velocity"], expected[plant.unprescribed], atol=1e-12)
    work = 0.5 * expected @ np.asarray(plant.model.mass_matrix(plant.start.q)) @ expected
    assert after["energy"]["work"] == pytest.approx(work, rel=1e-12)


def test_a_loop_on_a_base_that_a_table_moves() -> None:
    """As on a prescribed cart, with the jumps at both ends of the table."""
    schedule = {"step": "1 ms", "duration": "0.8 s", "integrator": "rk4"}
    bars = [body | ({"parent": "moving_base"} if body.get("parent") == "cart" else {}) for body in LOOP["bodies"][1:]]
    carried = {**LOOP, "gravity": [0, -9.81, 0], "bodies": bars, "moving_base": {"x": NATURAL}}
    on_base = {"mechanism": carried, "joints": LOOP_START, "schedule": schedule}
    mechanism = {**LOOP, "gravity": [0, -9.81, 0]}
    joints = {"cart": {"prescribed": NATURAL}, **LOOP_START}
    on_cart = {"mechanism": mechanism, "joints": joints, "schedule": schedule}
    runs = [Rig.from_dict(rig).run() for rig in (on_base, on_cart)]
    for name in ("A/position", "A/velocity", "C/velocity"):
        np.testing.assert_allclose(runs[0][name], runs[1][name], atol=1e-8)
    for run in runs:
        assert abs(run.summary["energy"]["residual"]) < 1e-6


def test_the_rate_of_a_jacobian_on_a_base_that_a_table_moves() -> None:
    rig = Rig.from_dict(swinging(NATURAL, "base"))
    model, q, v, t, h = rig.plant.model, np.array([0.4]), np.array([1.3]), 0.5, 1e-6
    ahead, back = (model.frame_jacobian(q + side * h * v, "pendulum", t + side * h) for side in (1, -1))
    found = model.frame_jacobian_rate(q, v, "pendulum", t)
    np.testing.assert_allclose(found, (ahead - back) / (2.0 * h), atol=1e-8)


# --- with modes ---


@pytest.mark.parametrize(("stop", "follows"), [({"upper": 0.0}, False), ({"lower": 0.0}, True)])
def test_a_stop_pushes_when_its_body_jumps(tmp_path, stop: dict[str, float], follows: bool) -> None:
    """The cart jumps forwards: a slider at its lower stop moves with it, one at its upper stop stays behind."""
    joints = {"slider": {"stops": {**stop, "restitution": 0}}}
    rig = carried(SLIDER, starts(tmp_path, 0.10037), mechanism={"gravity": [0, 0, 0]}, joints=joints)
    run = Rig.from_dict(rig).run()
    assert run["slider/velocity"][-1] == pytest.approx(0.0 if follows else -SPEED, abs=1e-12)
    kinetic = 0.5 * (2.0 + follows) * SPEED**2
    assert run["energy/work"][-1] == pytest.approx(kinetic, rel=1e-12)
    assert run["energy/dissipated"][-1] == pytest.approx(0.0, abs=1e-12)


def test_a_latch_holds_and_a_brake_slips_in_a_jump(tmp_path) -> None:
    """A brake of 0.4 N on 1 kg stops in 2 s what the jump left behind at 0.8 m/s."""
    mechanism, given = {"gravity": [0, 0, 0]}, starts(tmp_path, 0.10037)
    latched = carried(SLIDER, given, mechanism=mechanism, joints={"slider": {"latched": True}})
    assert not np.any(Rig.from_dict(latched).run()["slider/velocity"])
    events = [{"do": "brake", "of": "slider", "effort": 0.4, "at": 0.0}]
    schedule = {"duration": "2.5 s", "step": "10 ms"}
    run = Rig.from_dict(carried(SLIDER, given, mechanism=mechanism, events=events, schedule=schedule)).run()
    at = np.clip(run.t - 0.10037, 0.0, 2.0)
    moving = run.t > 0.10037
    np.testing.assert_allclose(run["slider/velocity"], np.where(moving, 0.4 * at - SPEED, 0.0), atol=1e-9)
    assert run["energy/dissipated"][-1] == pytest.approx(0.5 * SPEED**2, rel=1e-9)
    assert abs(run.summary["energy"]["residual"]) < 1e-10


def test_an_event_at_the_instant_of_a_jump_comes_after_it(tmp_path) -> None:
    """The latch takes the velocity that the jump gives, at the very end of a step."""
    events = [{"do": "latch", "of": "slider", "at": "100 ms"}]
    rig = carried(SLIDER, starts(tmp_path, 0.1), mechanism={"gravity": [0, 0, 0]}, events=events)
    run = Rig.from_dict(rig).run()
    assert not np.any(run["slider/velocity"])
    assert run["energy/dissipated"][-1] == pytest.approx(0.5 * SPEED**2, rel=1e-12)


def test_multirate_accounts_for_a_base_and_for_steps_of_no_length(tmp_path) -> None:
    """An event at a jump, at the very end of a step, acts in a step of no length."""
    events = [{"do": "latch", "of": "slider", "at": "100 ms"}]
    for by in ("joint", "base"):
        rig = carried(SLIDER, starts(tmp_path, 0.1), by, events=events, schedule={"integrator": "multirate"})
        run = Rig.from_dict(rig).run()
        assert not np.any(run["slider/velocity"])
        assert run["energy/dissipated"][-1] == pytest.approx(0.5 * SPEED**2, rel=1e-12)
        assert abs(run.summary["energy"]["residual"]) < 1e-10


# --- what else depends on time ---

TIMED = """
import numpy as np
from cosim.plugin import ConstraintLaw, ForceLaw, GeneralMotion, ReactionSpec, ops, params

AT, FORCE, SPEED = 0.10037, 5.0, 0.8

@params
class Params:
    pass

def load(params):
    return MADE
"""
LAWS = {
    "force": "ForceLaw(efforts=lambda frames, q, v, t: ops.array([ops.where(t < AT, 0.0, FORCE)]), timed=True, "
    "breaks=(AT,))",
    "constraint": 'ConstraintLaw((ReactionSpec("effort", "N", "m"),), lambda frames, q, t: ops.array([q[0] - '
    "ops.where(t < AT, 0.0, SPEED * (t - AT))]), timed=True, breaks=(AT,))",
    "joint": "GeneralMotion((), (), lambda q, t: (np.eye(3), ops.array([ops.where(t < AT, 0.0, SPEED * (t - AT)), "
    "0.0, 0.0])), timed=True, breaks=(AT,))",
}


def law(folder: Path, kind: str) -> str:
    (folder / f"{kind}.py").write_text(TIMED.replace("MADE", LAWS[kind]))
    return str(folder / f"{kind}.py")


@pytest.mark.parametrize("step", ["1 ms", "50 ms"])
def test_forces_that_switch_in_time(tmp_path, step: str) -> None:
    force = {"name": "push", "type": law(tmp_path, "force"), "joints": ["slider"]}
    mechanism = {"gravity": [0, 0, 0], "bodies": [SLIDER], "forces": [force]}
    schedule = {"step": step, "duration": "1 s", "integrator": "rk4"}
    run = Rig.from_dict({"mechanism": mechanism, "schedule": schedule}).run()
    assert run["slider/velocity"][-1] == pytest.approx(5.0 * (1.0 - 0.10037), rel=1e-13)
    assert run["slider/position"][-1] == pytest.approx(2.5 * (1.0 - 0.10037) ** 2, rel=1e-13)


@pytest.mark.parametrize("by", ["constraint", "joint"])
def test_users_laws_and_joints_jump_as_prescribed_joints_do(tmp_path, by: str) -> None:
    """A cart that a law moves, or a user's joint, and the pendulum that it carries."""
    prescribed = swinging(starts(tmp_path, 0.10037))
    of_user = swinging(starts(tmp_path, 0.10037))
    if by == "constraint":
        of_user["joints"].pop("cart")
        held = {"name": "drive", "type": law(tmp_path, "constraint"), "joints": ["cart"]}
        of_user["mechanism"]["constraints"] = [held]
    else:
        of_user["joints"].pop("cart")
        of_user["mechanism"]["bodies"][0] = {**CART, "type": law(tmp_path, "joint")}
        of_user["mechanism"]["bodies"][0].pop("axis")
    given, own = Rig.from_dict(prescribed).run(), Rig.from_dict(of_user).run()
    for name in ("pendulum/position", "pendulum/velocity", "energy/work", "energy/kinetic", "energy/dissipated"):
        np.testing.assert_allclose(own[name], given[name], atol=1e-9, err_msg=name)
    assert abs(own.summary["energy"]["residual"]) < 1e-7


# --- runs side by side, gradients ---

FOLLOWED = ["pendulum/position", "pendulum/velocity", "energy/work"]


@pytest.mark.parametrize("by", ["joint", "base"])
def test_batches_pass_breaks(by: str) -> None:
    """Rows of a batch equal single runs."""
    angles = np.linspace(-1.0, 1.0, 9)
    batch = Rig.from_dict(swinging(NATURAL, by, step="10 ms")).rollouts(
        initial={"pendulum/position": angles}, duration=1.2, keep="all", signals=FOLLOWED
    )
    for k in (0, 3, 8):
        single = swinging(NATURAL, by, step="10 ms")
        single["joints"]["pendulum"] = {"initial": {"position": float(angles[k])}}
        run = Rig.from_dict(single).run()
        for name in FOLLOWED:
            np.testing.assert_allclose(batch[name][k], run[name], rtol=1e-12, atol=1e-13)


def test_gradients_pass_breaks() -> None:
    """The derivative with respect to the mass, through a jump and breaks, equals central differences."""
    rig = Rig.from_dict(swinging(NATURAL, step="10 ms"))

    def figure(t: Any, signals: dict[str, Any]) -> Any:
        return ops.array([signals["pendulum/velocity"] ** 2])

    name, step = "mechanism.pendulum.mass", 1e-5
    gradient = rig.gradient(figure, [name], 1.2)
    batch = rig.rollouts({name: [1.0 - step, 1.0 + step]}, metrics=[figure], duration=1.2)
    low, high = np.ravel(batch["figure"])
    slope = (high - low) / (2.0 * step)
    assert abs(slope) > 1e-2
    assert gradient[name] == pytest.approx(slope, rel=1e-6)


# --- every trajectory ---

PATHS = {
    "quintic": {"goal": 0.3, "duration": "0.2 s", "back": True, "delay": "5 ms"},
    "minimum_jerk": {"goal": 0.3, "duration": "0.3 s", "via": [0.2, 0.1]},
    "spline": {"points": [0.3, 0.1], "times": ["0.1 s", "0.25 s"], "ends": "natural"},
    "trapezoidal": {"goal": 0.1, "max_velocity": "0.7 m/s", "max_acceleration": "9 m/s^2"},
    "sine": {"amplitude": "0.1 m", "frequency": "3 Hz", "ramp": "0.11 s"},
    "chirp": {"amplitude": 0.05, "f0": "1 Hz", "f1": "9 Hz", "duration": "0.21 s"},
    "multisine": {"amplitude": 0.05, "f0": "20 Hz", "f1": "40 Hz", "period": "0.07 s", "periods": 3},
    "waypoints": {"file": "rows.csv", "between": "monotone"},
}
SHAPED = {**PATHS["trapezoidal"], "shaping": {"type": "zvd", "frequency": "7 Hz"}}
# planned with the model of the mechanism that they would be a part of
PLANNED = {
    "time_optimal": {"points": [0.3]},
    "line": {"frame": "pendulum", "displacement": [0.1, 0, 0], "duration": "0.2 s"},
    "arc": {"frame": "pendulum", "center": [0, 0, 1], "axis": [0, 1, 0], "angle": "10 deg", "duration": "0.2 s"},
}


def test_the_table_has_every_trajectory() -> None:
    folder = Path(trajectories.__file__).parent
    assert {*PATHS, *PLANNED} == {path.stem for path in folder.glob("[a-z]*.py")}


@pytest.mark.parametrize(("name", "keys"), [*PATHS.items(), ("trapezoidal", SHAPED)])
def test_every_trajectory_moves_a_joint_and_a_base(tmp_path, name: str, keys: dict[str, Any]) -> None:
    """Both carry a pendulum in the same way, by other sweeps; and what they put in is what the mechanism has."""
    (tmp_path / "rows.csv").write_text("t,cart,x\n0,0,0\n0.0501,0.1,0.1\n0.1533,0.1,0.1\n0.2,0.3,0.3\n")
    keys = {**keys, "type": name} | ({"file": str(tmp_path / "rows.csv")} if "file" in keys else {})
    runs = [
        Rig.from_dict(swinging(keys, by, step="1 ms", duration="0.5 s", integrator="rodas4")).run()
        for by in ("joint", "base")
    ]
    for signal in ("pendulum/position", "pendulum/velocity"):
        np.testing.assert_allclose(runs[1][signal], runs[0][signal], atol=2e-9)
    assert np.ptp(runs[0]["pendulum/position"]) > 0.05
    for run in runs:
        exchanged = np.abs(np.diff(run["energy/work"])).sum()
        assert abs(run.summary["energy"]["residual"]) < 1e-7 * exchanged


@pytest.mark.parametrize(("name", "keys"), PLANNED.items())
@pytest.mark.parametrize("by", ["joint", "base"])
def test_planned_trajectories_are_refused(said, by: str, name: str, keys: dict[str, Any]) -> None:
    said(refusal(Rig.from_dict, swinging({**keys, "type": name}, by)))


@pytest.mark.parametrize(("name", "keys"), [*PATHS.items(), ("trapezoidal", SHAPED)])
def test_every_trajectory_is_smooth_between_its_breaks(tmp_path, name: str, keys: dict[str, Any]) -> None:
    """The acceleration is: its second differences fall with the square of their step, and at a kink would not."""
    (tmp_path / "rows.csv").write_text("t,cart\n0,0\n0.0501,0.1\n0.1533,0.1\n0.2,0.3\n")
    keys = {**keys, "type": name} | ({"file": str(tmp_path / "rows.csv")} if "file" in keys else {})
    rig = Rig.from_dict(swinging(keys))
    breaks = rig.plant.breaks
    begins, ends = np.array([1e-9, *breaks.after]), np.array([*breaks.before, max(0.6, *breaks.after + 0.1)])
    for begin, end in zip(begins, ends, strict=True):
        if end - begin < 1e-6:
            continue
        coarse, fine = (
            np.abs(np.diff([of_cart(rig, float(t))[1] for t in np.linspace(begin, end, n)], 2)).max()
            for n in (201, 401)
        )
        assert fine < 0.3 * coarse + 1e-9, (begin, end)


# --- what is refused ---


def test_what_is_refused(tmp_path, said) -> None:
    starts(tmp_path, 0.1)
    text = (tmp_path / "starts.py").read_text()
    changes = {
        "jumps": ("position, velocity = self.start + moves", "position, velocity = self.start + moves + moves"),
        "number": ("self.breaks = at, late, start, [at]", "self.breaks = at, late, start, at"),
        "text": ("self.breaks = at, late, start, [at]", 'self.breaks = at, late, start, ["soon"]'),
        "endless": ("self.breaks = at, late, start, [at]", "self.breaks = at, late, start, [at, np.inf]"),
    }
    for name, (old, new) in changes.items():
        assert old in text
        (tmp_path / f"{name}.py").write_text(text.replace(old, new))
        for by in ("joint", "base"):
            said(refusal(Rig.from_dict, carried(SLIDER, {"type": f"{name}.py", "at": 0.1}, by), tmp_path))


@pytest.mark.parametrize("kind", LAWS)
def test_what_is_refused_of_users(tmp_path, said, kind: str) -> None:
    """Breaks that are no times; and positions that jump, of a joint and of a constraint."""
    changes = [("breaks=(AT,)", 'breaks=("soon",)'), ("breaks=(AT,)", "breaks=AT")]
    for old, new in changes if kind == "force" else [*changes, ("SPEED * (t - AT)", "SPEED * t")]:
        file = law(tmp_path, kind)
        Path(file).write_text(Path(file).read_text().replace(old, new))
        rig = still(TRAPEZOIDAL)
        if kind == "joint":
            rig["mechanism"]["bodies"][1] = {"name": "slider", "type": file, "mass": 1.0}
        else:
            section = {"force": "forces", "constraint": "constraints"}[kind]
            rig["mechanism"][section] = [{"name": "own", "type": file, "joints": ["slider"]}]
        said(refusal(Rig.from_dict, rig))


def test_a_jump_beside_a_real_motor_is_refused(tmp_path, said) -> None:
    text, given = (
        Path("rigs/flywheel_vesc.yaml").read_text(),
        "{type: spline, points: [1], times: [1 s], degree: 3, ends: natural}",
    )
    bodies = "  bodies:\n    - {name: cart, type: prismatic, axis: [1, 0, 0], mass: 2 kg}\n"
    joint = text.replace("  bodies:\n", bodies).replace("\njoints:\n", f"\njoints:\n  cart: {{prescribed: {given}}}\n")
    base = text.replace("mechanism:\n", f"mechanism:\n  moving_base: {{x: {given}}}\n")
    for jumping in (joint, base):
        said(refusal(rig_in, tmp_path, jumping))
        assert rig_in(tmp_path, jumping.replace("natural", "clamped")).plant.real
