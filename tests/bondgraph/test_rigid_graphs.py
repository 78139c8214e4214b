"""Graphs that follow the acceleration of their joints, against equations by hand: mechanism and graph are solved
together, whatever the integrator, the events and the number of joints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from cosim import Rig
from cosim.core.errors import InputErrors
from tests.kit.messages import Said
from tests.kit.refusals import raised

# integrator and its options -> largest relative error of a run of 1 s in steps of 1 ms
INTEGRATORS: dict[str, tuple[dict[str, Any], float]] = {
    "rk4": ({"integrator": "rk4"}, 1e-8),
    "rodas4": ({"integrator": "rodas4", "substeps": "auto", "tolerance": 1e-9}, 1e-8),
    "rosenbrock": ({"integrator": "rosenbrock"}, 1e-4),
    "semi_implicit_euler": ({"integrator": "semi_implicit_euler"}, 2e-2),
    "multirate": ({"integrator": "multirate"}, 1e-5),
}
LOAD = {"name": "load", "joint": "axis", "axis": [0, 0, 1], "mass": 1, "inertia": [1, 1, 0.2]}


def rotational(kind: str, **values: Any) -> dict[str, Any]:
    return {"type": kind, "domain": "rotational", **values}


def torque(law: str) -> dict[str, Any]:
    return rotational("Se", law=law)


def rig_of(
    graph: dict[str, Any], signals: dict[str, str], joint: dict[str, Any] | None = None, body: Any = LOAD, **others: Any
) -> Rig:
    schedule = {"step": "1 ms", "duration": "1 s", "integrator": "rk4"} | others.pop("schedule", {})
    actuator = {"type": "bond_graph", "graph": graph, "signals": signals}
    return Rig.from_dict(
        {
            "mechanism": {"gravity": [0, 0, 0], "bodies": [body]},
            "joints": {body["joint"]: {"actuator": actuator, **(joint or {})}},
            "schedule": schedule,
            **others,
        }
    )


def solved(rates: Callable[..., Any], start: Any, t: np.ndarray, **options: Any) -> np.ndarray:
    found = solve_ivp(
        rates, (0.0, t[-1]), start, t_eval=t, **{"rtol": 1e-10, "atol": 1e-12, "method": "DOP853"} | options
    )
    return found.y


def close(found: np.ndarray, expected: np.ndarray, relative: float) -> None:
    np.testing.assert_allclose(found, expected, atol=relative * np.ptp(expected), rtol=0.0)


# --- a planetary gear with three moving shafts ---

TEETH = 2.5
SUN, RING, ARM = 0.01, 0.05, 0.2  # inertias
POWER_SPLIT = {
    "elements": {
        "to_sun": torque("3*sin(4*t)"),
        "to_ring": torque("-2 + t"),
        "sun_inertia": rotational("I", inertia=SUN),
        "ring_inertia": rotational("I", inertia=RING),
    },
    "components": {"gear": {"type": "planetary", "ring_ratio": TEETH}},
    "junctions": {"sun": 1, "ring": 1, "arm": 1},
    "bonds": [
        "to_sun -> sun -> sun_inertia",
        "sun -> gear.sun",
        "gear.ring -> ring -> ring_inertia",
        "to_ring -> ring",
        "gear.arm -> arm -> joint",
    ],
}
SPEEDS = {"sun": "sun.flow", "ring": "ring.flow", "inertial": "sun_inertia.effort"}
# in the speeds of arm and ring, with ω_sun = (1 + i) ω_arm − i ω_ring
SPLIT = np.array([1.0 + TEETH, -TEETH])
MASS = np.diag([ARM, RING]) + SUN * np.outer(SPLIT, SPLIT)


def accelerations(t: float) -> np.ndarray:
    return np.linalg.solve(MASS, 3.0 * np.sin(4.0 * t) * SPLIT + np.array([0.0, -2.0 + t]))


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_power_split_moves_as_its_equations_by_hand(integrator: str) -> None:
    schedule, error = INTEGRATORS[integrator]
    run = rig_of(POWER_SPLIT, SPEEDS, schedule=schedule).run()
    speeds = solved(lambda t, _: accelerations(t), [0.0, 0.0], run.t)
    close(run["axis/velocity"], speeds[0], error)
    close(run["axis/ring"], speeds[1], error)
    np.testing.assert_allclose(run["axis/sun"], SPLIT @ [run["axis/velocity"], run["axis/ring"]], atol=1e-12)
    inertial = SUN * np.array([SPLIT @ accelerations(t) for t in run.t])
    close(run["axis/inertial"], inertial, 1e-9)  # needs the acceleration itself
    assert abs(run.summary["energy"]["residual_relative"]) < max(1e-12, 0.2 * error)


def test_a_latch_that_stops_the_arm_lets_the_ring_turn_on() -> None:
    """No impulse acts on the ring: J_r ω_r + i J_s (i ω_r − (1 + i) ω_arm) does not jump."""
    event = {"name": "caught", "when": {"signal": "axis/position", "above": 1.0}, "do": "latch", "of": "axis"}
    run = rig_of(POWER_SPLIT, SPEEDS, events=[event]).run()

    def caught(_: float, x: Any) -> float:
        return float(x[2] - 1.0)

    caught.terminal = True  # type: ignore[attr-defined]
    free = solve_ivp(
        lambda t, x: [*accelerations(t), x[0]], (0.0, 1.0), [0.0] * 3, events=caught, rtol=1e-11, atol=1e-13
    )
    at, (arm, ring, _) = free.t[-1], free.y[:, -1]
    assert 0.1 < at < 0.9
    later = run.t > at + 1e-3
    assert not run["axis/velocity"][later].any()

    def alone(t: float, _: Any) -> float:
        return (3.0 * np.sin(4.0 * (t + at)) * SPLIT[1] - 2.0 + t + at) / MASS[1, 1]

    after = solved(alone, [ring + MASS[1, 0] * arm / MASS[1, 1]], np.append(0.0, run.t[later] - at))[0, 1:]
    close(run["axis/ring"][later], after, 1e-7)
    assert abs(run.summary["energy"]["residual_relative"]) < 1e-9


# --- other rigid branches ---


def test_a_mass_behind_a_lever_whose_ratio_turns_with_the_joint() -> None:
    """The mass m moves by r(q) q̇ with r = 0.1 + 0.05 sin q: (J + m r²) q̈ + m r r' q̇² = τ."""
    graph = {
        "elements": {
            "drive": torque("0.5*cos(3*t)"),
            "lever": {
                "type": "TF",
                "domain": "rotational",
                "to": "translational",
                "law": "0.1 + 0.05*sin(position)",
            },
            "mass": {"type": "I", "domain": "translational", "inertia": 4},
        },
        "junctions": {"shaft": 1, "slide": 1},
        "bonds": ["drive -> shaft -> lever -> slide -> mass", "shaft -> joint"],
    }
    rig = rig_of(graph, {"speed": "slide.flow", "force": "mass.effort"}, {"initial": {"position": 0.3, "velocity": 2}})

    def ratio(q: Any) -> Any:
        return 0.1 + 0.05 * np.sin(q)

    def rates(t: float, x: Any) -> list[float]:
        q, v = x
        return [v, (0.5 * np.cos(3.0 * t) - 4.0 * ratio(q) * 0.05 * np.cos(q) * v * v) / (0.2 + 4.0 * ratio(q) ** 2)]

    run = rig.run()
    q, v = solved(rates, [0.3, 2.0], run.t)
    close(run["axis/position"], q, 1e-9)
    close(run["axis/speed"], ratio(q) * v, 1e-8)
    assert abs(run.summary["energy"]["residual_relative"]) < 1e-10


FRICTION = 0.1


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_rigid_gear_whose_friction_grows_with_its_torque(integrator: str) -> None:
    """The torque n M of the mesh takes the friction μ |n M| / (1 ± μ), + where the motor drives."""
    graph = {
        "elements": {"drive": torque("0.3*sin(4*t)"), "rotor": rotational("I", inertia=0.001)},
        "components": {"gear": {"type": "gear_stage", "ratio": 10, "load_friction": FRICTION, "inertia": 0.02}},
        "junctions": {"shaft": 1},
        "bonds": ["drive -> shaft -> rotor", "shaft -> gear.input", "gear.output -> joint"],
    }

    def acceleration(t: float, x: Any) -> list[float]:
        (v,) = x

        def lacking(a: float) -> float:
            mesh = 10.0 * (0.3 * np.sin(4.0 * t) - 0.001 * 10.0 * a)
            share = 1.0 + FRICTION if mesh * v > 0.0 else 1.0 - FRICTION
            return mesh - FRICTION * abs(mesh) / share * v / np.hypot(v, 0.01) - 0.22 * a

        return [brentq(lacking, -1e3, 1e3, xtol=1e-13)]

    schedule, error = INTEGRATORS[integrator]
    run = rig_of(graph, {"mesh": "gear.torque.effort"}, {"initial": {"velocity": 0.5}}, schedule=schedule).run()
    expected = solved(acceleration, [0.5], run.t, max_step=1e-3, rtol=1e-9, atol=1e-11)[0]
    close(run["axis/velocity"], expected, max(error, 1e-6))
    assert abs(run.summary["energy"]["residual_relative"]) < max(1e-12, error)


@pytest.mark.parametrize("width", [None, 0.05])
def test_a_rigid_gear_with_dry_friction_too_turns_back_without_a_jump(width: float | None) -> None:
    """Between what the motor and what the load would have, M_0 passes over the width, by default M_0, and both pass
    over the creep speed."""
    friction = {"load_friction": FRICTION, "coulomb": 0.2, **({"load_width": width} if width else {})}
    graph = {
        "elements": {"drive": torque("0.3*sin(4*t)"), "rotor": rotational("I", inertia=0.001)},
        "components": {"gear": {"type": "gear_stage", "ratio": 10, "inertia": 0.02, **friction}},
        "junctions": {"shaft": 1},
        "bonds": ["drive -> shaft -> rotor", "shaft -> gear.input", "gear.output -> joint"],
    }

    def acceleration(t: float, x: Any) -> list[float]:
        (v,) = x
        direction = np.clip(v / 0.01, -1.0, 1.0)

        def passed(driving: float) -> float:
            share = 0.5 + 0.5 * driving * direction
            return share / (1.0 + FRICTION) + (1.0 - share) / (1.0 - FRICTION)

        def lacking(a: float) -> float:
            mesh = 10.0 * (0.3 * np.sin(4.0 * t) - 0.001 * 10.0 * a)
            dry = 0.2 * passed(np.clip(mesh / (width or 0.2), -1.0, 1.0)) + FRICTION * abs(mesh) * passed(np.sign(mesh))
            return mesh - dry * v / np.hypot(v, 0.01) - 0.22 * a

        return [brentq(lacking, -1e3, 1e3, xtol=1e-13)]

    schedule = {"duration": "1.5 s", "integrator": "rodas4", "substeps": "auto", "tolerance": 1e-10}
    run = rig_of(graph, {}, {"initial": {"velocity": 0.5}}, schedule=schedule).run()
    expected = solved(acceleration, [0.5], run.t, max_step=1e-3, rtol=1e-9, atol=1e-11)[0]
    assert expected.min() < -0.5  # it turns back
    close(run["axis/velocity"], expected, 1e-6)
    assert abs(run.summary["energy"]["residual_relative"]) < 1e-12


def test_a_source_of_flow_that_changes_with_time_moves_the_joint_by_the_inertia_between() -> None:
    """J_a ω_a + J_r ω_r (1 + i)/i does not change, with i ω_r = (1 + i) ω_a − ω_s."""
    graph = {
        "elements": {
            "source": rotational("Sf", law="3*sin(4*t)"),
            "ring_inertia": rotational("I", inertia=RING),
        },
        "components": {"gear": {"type": "planetary", "ring_ratio": TEETH}},
        "junctions": {"sun": 1, "ring": 1, "arm": 1},
        "bonds": ["source -> sun -> gear.sun", "gear.ring -> ring -> ring_inertia", "gear.arm -> arm -> joint"],
    }
    run = rig_of(graph, {"ring": "ring.flow"}).run()
    share = (1.0 + TEETH) / TEETH
    arm = share / TEETH * RING * 3.0 * np.sin(4.0 * run.t) / (ARM + RING * share**2)
    close(run["axis/velocity"], arm, 1e-9)
    assert abs(run.summary["energy"]["residual_relative"]) < 1e-9


def test_a_differential_whose_sides_are_geared_together_turns_at_one_ratio() -> None:
    """ω_joint = ω_s + m ω_s: the rigid loop imposes the speed of the shaft's inertia, which cannot be a state."""
    graph = {
        "elements": {
            "motor": torque("3*sin(4*t)"),
            "rotor": rotational("I", inertia=0.05),
            "gear": rotational("TF", ratio=0.5),
        },
        "junctions": {"shaft": 1, "differential": 0},
        "bonds": ["motor -> shaft -> rotor", "shaft -> differential -> joint", "shaft -> gear -> differential"],
    }
    run = rig_of(graph, {"shaft": "shaft.flow"}, {"initial": {"velocity": 3}}).run()
    a = 3.0 * np.sin(4.0 * run.t) / 1.5 / (0.2 + 0.05 / 1.5**2)
    close(run["axis/acceleration"], a, 1e-12)
    np.testing.assert_allclose(run["axis/shaft"], run["axis/velocity"] / 1.5, atol=1e-12)


def test_the_rate_of_a_sampled_request_is_refused(said: Said) -> None:
    graph = {
        "elements": {"source": rotational("Sf", law="request"), "inertia": rotational("I", inertia=RING)},
        "components": {"gear": {"type": "planetary", "ring_ratio": TEETH}},
        "junctions": {"sun": 1, "ring": 1, "arm": 1},
        "bonds": ["source -> sun -> gear.sun", "gear.ring -> ring -> inertia", "gear.arm -> arm -> joint"],
    }
    said(raised(InputErrors, rig_of, graph, {}))


# --- signals behind rigid gears ---


def test_torques_inside_a_rigid_drive_are_recorded_with_the_acceleration() -> None:
    """A rotor J at ratio n before a load: the mesh carries n (τ − J n q̈), and the load J_L q̈."""
    graph = {
        "elements": {
            "motor": torque("2*sin(5*t)"),
            "rotor": rotational("I", inertia=0.1),
            "gear": rotational("TF", ratio=0.5),
        },
        "junctions": {"shaft": 1, "output": 1},
        "bonds": ["motor -> shaft -> rotor", "shaft -> gear -> output -> joint"],
        "signals": {"mesh": {"law": "motor.effort - rotor.effort", "unit": "N*m"}},
    }
    run = rig_of(graph, {"inertial": "rotor.effort", "on_joint": "joint.effort"}).run()
    a = 4.0 * np.sin(5.0 * run.t) / (0.2 + 0.1 * 4.0)
    close(run["axis/inertial"], 0.2 * a, 1e-12)
    close(run["axis/mesh"], 2.0 * np.sin(5.0 * run.t) - 0.2 * a, 1e-12)
    close(run["axis/on_joint"], 0.2 * a, 1e-12)


@pytest.mark.parametrize("bonds", [["joint -> part"], ["node -> part", "node -> joint"], ["joint -> node -> part"]])
@pytest.mark.parametrize(
    ("part", "end"),
    [
        (rotational("R", resistance=0.5), 3.0 * np.exp(-0.5 / 0.2)),
        (rotational("C", stiffness=20), 3.0 * np.cos(np.sqrt(20 / 0.2))),
        (rotational("I", inertia=0.05), 3.0),
    ],
    ids=["R", "C", "I"],
)
def test_a_bond_may_enter_or_leave_the_joint(part: dict[str, Any], end: float, bonds: list[str]) -> None:
    graph = {"elements": {"part": part}, "junctions": {"node": 1} if "node" in "".join(bonds) else {}, "bonds": bonds}
    run = rig_of(graph, {}, {"initial": {"velocity": 3}}).run()
    assert run["axis/velocity"][-1] == pytest.approx(end, abs=1e-6)
    assert abs(run.summary["energy"]["residual_relative"]) < 1e-6


# --- several joints ---

WRIST = {
    "joints": {"roll": "roll", "pitch": "pitch"},
    "graph": {
        "elements": {
            "left": torque("3*sin(4*t)"),
            "right": torque("1.5"),
            "left_rotor": rotational("I", inertia=0.05),
            "right_rotor": rotational("I", inertia=0.03),
            "bevel": rotational("TF", ratio=1),
            "reversing": rotational("TF", ratio=-1),
        },
        "junctions": {"a": 1, "b": 1, "at_a": 0, "at_b": 0, "carrier": 1, "tool": 1},
        "bonds": [
            "left -> a -> left_rotor",
            "right -> b -> right_rotor",
            "a -> at_a -> carrier",
            "b -> at_b -> carrier",
            "at_a -> bevel -> tool",
            "at_b -> reversing -> tool",
            "carrier -> roll",
            "tool -> pitch",
        ],
    },
    "signals": {"left_speed": "a.flow", "right_speed": "b.flow"},
}
WRIST_BODIES = [
    {"name": "roll_link", "joint": "roll", "axis": [0, 0, 1], "mass": 1, "inertia": [1, 1, 0.3]},
    {"name": "pitch_link", "parent": "base", "joint": "pitch", "axis": [0, 1, 0], "mass": 1, "inertia": [1, 0.2, 1]},
]


def wrist(**others: Any) -> Rig:
    schedule = {"step": "1 ms", "duration": "1 s", "integrator": "rk4"} | others.pop("schedule", {})
    mechanism = {"gravity": [0, 0, 0], "bodies": WRIST_BODIES}
    given = {"mechanism": mechanism, "bond_graphs": {"wrist": WRIST}, "schedule": schedule}
    return Rig.from_dict(given | others)


@pytest.mark.parametrize("integrator", [name for name in INTEGRATORS if name != "multirate"])
def test_a_differential_wrist_moves_both_joints_as_by_hand(integrator: str) -> None:
    """The motors turn at q̇_roll ± q̇_pitch, so the mass matrix is full."""
    mass = np.diag([0.3, 0.2]) + 0.05 * np.ones((2, 2)) + 0.03 * np.array([[1, -1], [-1, 1]])
    schedule, error = INTEGRATORS[integrator]
    run = wrist(schedule=schedule).run()
    speeds = solved(
        lambda t, _: np.linalg.solve(mass, [3 * np.sin(4 * t) + 1.5, 3 * np.sin(4 * t) - 1.5]), [0.0, 0.0], run.t
    )
    close(run["roll/velocity"], speeds[0], error)
    close(run["pitch/velocity"], speeds[1], error)
    close(run["wrist/left_speed"], speeds.sum(axis=0), error)
    assert abs(run.summary["energy"]["residual_relative"]) < max(1e-12, 0.2 * error)


def test_multirate_takes_drives_of_one_joint_each(said: Said) -> None:
    said(raised(InputErrors, wrist, schedule={"integrator": "multirate"}))


def test_one_joint_of_a_drive_of_two_may_be_locked() -> None:
    """The other one turns with both rotors; what is needed to hold the first one follows from them."""
    run = wrist(joints={"roll": {"latched": True}}).run()
    pitch = (3.0 * np.sin(4.0 * run.t) - 1.5) / (0.2 + 0.08)
    close(run["pitch/acceleration"], pitch, 1e-9)
    holding = -(3.0 * np.sin(4.0 * run.t) + 1.5) + 0.02 * pitch
    close(run["roll/holding_effort"], holding, 1e-9)


MISTAKES: dict[str, dict[str, Any]] = {
    "an unknown joint": {"joints": {"roll": "rol", "pitch": "pitch"}},
    "no joints": {"joints": {}},
    "a joint that the graph does not bond": {"joints": {"roll": "roll", "tilt": "pitch"}},
    "one joint twice": {"joints": {"roll": "roll", "pitch": "roll"}},
    "a drive of one joint": {"type": "ideal", "joints": {"roll": "roll"}},
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_in_drives_of_several_joints(name: str, said: Said) -> None:
    mistake = MISTAKES[name]
    section = mistake if "type" in mistake else {**WRIST, **mistake}
    said(raised(InputErrors, wrist, bond_graphs={"wrist": section}), name)


@pytest.mark.parametrize("name", ["actuator", "prescribed"])
def test_a_joint_moves_by_one_thing_alone(name: str, said: Said) -> None:
    own = {"actuator": {"type": "ideal"}, "prescribed": {"type": "sine", "amplitude": 1, "frequency": 1}}[name]
    said(raised(InputErrors, wrist, joints={"roll": {name: own}}), name)
