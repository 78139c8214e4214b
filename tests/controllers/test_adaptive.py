"""Adaptive control: the error vanishes and parameters converge, on a plant that has a load which the model lacks."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from cosim.core.compile import ArrayPort, compile
from cosim.core.layout import Layout
from cosim.core.types import COMMAND, ControllerContext, Limits
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.description.urdf import parse_urdf
from cosim.mechanics.multibody.mechanism import Inertial
from cosim.plugins.controllers import adaptive
from tests.controllers.arms import arm

ARM = "".join(
    ['<robot name="arm"><link name="base"/>']
    + [
        f'<link name="l{k}"><inertial><origin xyz="0.2 0 0"/><mass value="2"/>'
        '<inertia ixx="0.01" iyy="0.03" izz="0.03" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        f'<joint name="j{k}" type="continuous"><parent link="{"base" if k == 0 else f"l{k - 1}"}"/>'
        f'<child link="l{k}"/><origin xyz="{0.4 if k else 0} 0 0"/><axis xyz="0 1 0"/></joint>'
        for k in range(2)
    ]
    + ['<link name="hand"/><joint name="grip" type="fixed"><parent link="l1"/><child link="hand"/>']
    + ['<origin xyz="0.4 0 0"/></joint></robot>']
)
MODEL = Model(parse_urdf(ARM))
PERIOD, MASS, COM, VISCOUS, COULOMB = 1e-3, 1.5, np.array([0.05, 0.0, 0.03]), 2.0, 1.0
KEYS: dict[str, Any] = {
    "bandwidth": (2.0, 2.0),
    "kd": (20.0, 8.0),
    "adaptation": 0.5,
    "load": "hand",
    "largest_mass": 3.0,
    "largest_moment": 0.3,
    "largest_viscous": (5.0, 5.0),
    "largest_coulomb": (4.0, 4.0),
}


def loaded() -> Model:
    """The arm with a point mass in its hand, and a model that has it."""
    about_com = np.eye(3) * 1e-9
    links = [
        dataclasses.replace(link, inertial=Inertial(MASS, COM, about_com)) if link.name == "hand" else link
        for link in MODEL.mechanism.links
    ]
    return Model(dataclasses.replace(MODEL.mechanism, links=tuple(links)))


def reference(t: np.ndarray) -> dict[str, np.ndarray]:
    """Two sines per joint, which excite all parameters."""
    found: dict[str, Any] = {name: 0.0 for name in ("position", "velocity", "acceleration")}
    for rate, size in ((2.0, np.array([0.5, -0.6])), (5.3, np.array([0.2, 0.35]))):
        found["position"] = found["position"] + np.outer(np.sin(rate * t), size)
        found["velocity"] = found["velocity"] + np.outer(rate * np.cos(rate * t), size)
        found["acceleration"] = found["acceleration"] + np.outer(-rate * rate * np.sin(rate * t), size)
    return found | {"effort": np.zeros((len(t), 2))}


def simulated(block: Any, plant: Model, duration: float, limit: float = np.inf) -> tuple[np.ndarray, np.ndarray]:
    """(tracking errors (k, 2), parameters (k, p)) of the block on the plant with the friction of its drives."""
    layout, names = Layout(block.initial()), list(block.inputs)

    def update(x: Any, *values: Any) -> tuple[Any, ...]:
        after, y = block.update(0.0, block.params, layout.unpack(x), dict(zip(names, values, strict=True)))
        return layout.pack(after), *(y[name] for name in COMMAND)

    step = compile(update, [ArrayPort("x", (layout.size,)), *(ArrayPort(n, block.inputs[n].shape) for n in names)], "u")
    times = np.arange(0.0, duration, PERIOD)
    wanted = reference(times)
    q, v, x, errors, states = wanted["position"][0], wanted["velocity"][0], layout.pack(block.initial()), [], []
    for k in range(len(times)):
        u = {f"reference_{name}": values[k] for name, values in wanted.items()}
        u |= {"position": q, "velocity": v, "all_position": q, "all_velocity": v}
        u |= {"all_acceleration": np.zeros(2), "all_locked": np.zeros(2)}
        x, position, velocity, effort, kp, kd = step(x, *(u[name] for name in names))
        errors.append(wanted["position"][k] - q)
        states.append(block.parameters(layout.unpack(x)))
        for _ in range(4):  # the PD loop of the drive runs four times as fast
            request = np.clip(kp * (position - q) + kd * (velocity - v) + effort, -limit, limit)
            friction = VISCOUS * v + COULOMB * v / np.sqrt(v * v + 1e-4)
            v = v + 0.25 * PERIOD * plant.forward_dynamics(q, v, request - friction)
            q = q + 0.25 * PERIOD * v
    return np.array(errors), np.array(states)


def make(limit: float = np.inf, **changes: Any) -> Any:
    limits = Limits(np.full(2, -9.0), np.full(2, 9.0), np.full(2, 9.0), np.full(2, limit))
    context = ControllerContext(("j0", "j1"), np.arange(2), MODEL, PERIOD, limits, np.zeros(2, dtype=bool))
    return adaptive.load(adaptive.Params(**{**KEYS, **changes}), context)


def test_the_error_vanishes_and_the_parameters_become_those_of_the_load_and_the_friction():
    """Without adaptation the error stays."""
    block = make(largest_inertia=0.05, adaptation=2.0)
    errors, states = simulated(block, loaded(), 15.0)
    without, _ = simulated(make(adaptation=0.0), loaded(), 3.0)
    assert np.abs(without[-1000:]).max() > 5.0 * np.abs(errors[2000:3000]).max()
    first, last = np.abs(errors[:2000]).max(), np.abs(errors[-2000:]).max()
    assert last < 0.06 * first and last < 1e-3
    mass, x, y, z, *_ = states[-1]
    assert mass == pytest.approx(MASS, rel=0.1)
    assert (x, y, z) == pytest.approx((MASS * COM[0], 0.0, MASS * COM[2]), abs=0.02)
    np.testing.assert_allclose(states[-1][-4:], [VISCOUS, VISCOUS, COULOMB, COULOMB], rtol=0.1)


def test_the_loop_takes_no_energy_from_a_disturbed_start():
    """½ sᵀ M s + ½ θ̃ᵀ Γ⁻¹ θ̃ does not grow: the passivity on which convergence rests, with the true parameters known."""
    plant, block = loaded(), make(largest_inertia=0.05)
    about = MASS * (COM @ COM * np.eye(3) - np.outer(COM, COM))
    inertia = [about[k] for k in ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))]
    true = np.array([MASS, *(MASS * COM), *inertia, VISCOUS, VISCOUS, COULOMB, COULOMB]) / block.scale
    layout, wanted, energies = Layout(block.initial()), reference(np.arange(0.0, 0.4, PERIOD)), []
    q, v, x = wanted["position"][0] + 0.1, wanted["velocity"][0] - 0.3, block.initial()
    for k in range(400):
        u = {f"reference_{name}": values[k] for name, values in wanted.items()}
        u |= {"position": q, "velocity": v, "all_position": q, "all_velocity": v}
        u |= {"all_acceleration": np.zeros(2), "all_locked": np.zeros(2)}
        s = v - (u["reference_velocity"] + 4.0 * np.pi * (u["reference_position"] - q))
        miss = x["scaled"] - true
        energies.append(0.5 * s @ plant.mass_matrix(q) @ s + 0.5 * miss @ miss / KEYS["adaptation"])
        x, y = block.update(0.0, block.params, x, u)
        request = y["kp"] * (y["position"] - q) + y["kd"] * (y["velocity"] - v) + y["effort"]
        w = v - s  # the friction of the model is at w: the rest of it damps s
        friction = VISCOUS * v + COULOMB * w / np.sqrt(w * w + 1e-4)
        v = v + PERIOD * plant.forward_dynamics(q, v, request - friction)
        q = q + PERIOD * v
    assert layout.size == len(true)
    assert np.diff(energies).max() < 2e-3 * energies[0] and energies[-1] < 0.75 * energies[0]


def test_parameters_stay_within_their_bounds():
    block = make(largest_mass=0.4, largest_viscous=(0.5, 0.5), adaptation=5.0)
    _, states = simulated(block, loaded(), 4.0)
    assert states[:, 0].max() == pytest.approx(0.4) and states[:, 0].min() >= 0.0
    assert np.abs(states[:, 1:4]).max() <= 0.3 and states[:, 4:].min() >= 0.0
    assert states[:, 4].max() == pytest.approx(0.5)


def test_nothing_is_adapted_at_the_effort_limit_or_in_the_dead_zone():
    for block, limit in ((make(3.0), 3.0), (make(dead_zone=(99.0, 99.0)), np.inf)):
        _, states = simulated(block, loaded(), 0.3, limit)
        assert not states.any()


@pytest.mark.parametrize(
    "keys",
    [
        "",
        ", load: fore",
        ", largest_mass: 1 kg",
        ", load: fort, largest_mass: 1 kg",
        ", load: base, largest_mass: 1 kg",
        ", load: fore, largest_mass: -1 kg",
    ],
)
def test_what_cannot_be_is_refused(command, tmp_path, keys, said):
    with pytest.raises(Exception, match=r"controllers\[0\]"):
        arm(tmp_path, f"{{type: adaptive, bandwidth: 3 Hz, kd: 9{keys}}}")
    said(command.refuses("check", "rig.yaml"))
