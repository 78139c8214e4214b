"""Frequency responses of the plant from one signal to others, such as from the current of a motor to its speed.

The equations of the plant are linearised at a state, with what controllers request and what drives hold between samples
as inputs: ẋ = F x + b u, signals y = C x + D u. One input moves the joint of the first signal, and the response is the
ratio Y / X of what it does to both. Where all of the plant that moves Y is moved by X, as a mechanism is by the current
of its motor, this is the response to X itself, whatever drives it: the zeros of Y are its antiresonances, and the zeros
of X its resonances. Those that both have are none of the response.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cosim.apps.analysis.circle import balanced
from cosim.apps.analysis.contact_states import contact_states
from cosim.apps.analysis.linearisation import with_first_calls
from cosim.apps.analysis.plant_steps import PlantSteps
from cosim.core import ops
from cosim.core.compile.jacobian import Jacobian
from cosim.core.errors import InputError, near_names
from cosim.core.types import Array, Numeric
from cosim.core.units import TURN
from cosim.output.text_table import TextTable, bold
from cosim.simulation.tick.tick_model import TickModel

POINTS = 400  # of a response, without those about its resonances
BEYOND = 20.0  # below the lowest and above the highest resonance, as a factor
WIDTHS = np.tan(np.linspace(-1.5, 1.5, 31))  # beside a resonance, times its decay
SHOWN = 0.5  # damping up to which a pair of zeros is a resonance
SAME = 1e-6  # relative distance of zeros that are one
LEAST = 1e-12  # of the largest movement of a signal, below which it does not move


@dataclass(frozen=True)
class Resonance:
    """A lightly damped pair of poles, or of zeros, of a response. frequency [rad/s]: its |s|."""

    frequency: float
    damping: float


@dataclass(frozen=True)
class SignalResponse:
    """From one signal to another: `values` (m,) at the angular frequencies `omega` (m,) [rad/s]. unit: of them."""

    given: str
    signal: str
    unit: str
    omega: Array
    values: Array
    resonances: Sequence[Resonance]
    antiresonances: Sequence[Resonance]

    def lines(self) -> Iterator[str]:
        yield f"{bold(self.signal)} by {self.given} [{self.unit}]"
        kinds = {"resonance": self.resonances, "antiresonance": self.antiresonances}
        rows = sorted((each.frequency, kind, each.damping) for kind, found in kinds.items() for each in found)
        if not rows:
            yield f"no resonance with a damping below {SHOWN:g}"
            return
        table = TextTable(["what"], ["frequency", "damping"])
        for frequency, kind, damping in rows:
            table.add_row(kind, f"{frequency / TURN:.4g} Hz", f"{damping:.3g}")
        yield from table.lines()

    def as_json(self) -> dict[str, Any]:
        return {
            "from": self.given,
            "unit": self.unit,
            "omega": self.omega.tolist(),
            "real": np.real(self.values).tolist(),
            "imag": np.imag(self.values).tolist(),
            **{
                key: [{"frequency": each.frequency, "damping": each.damping} for each in found]
                for key, found in (("resonances", self.resonances), ("antiresonances", self.antiresonances))
            },
        }


def signal_responses(tick_model: TickModel, memory: Array, given: str, signals: Sequence[str]) -> list[SignalResponse]:
    """From the signal `given` of a joint to others, of the plant in a tick that begins with this memory.

    Raises InputError for unknown signals, for one that its joint does not move, and where a contact touches, whose
    force the equations of the plant do not have.
    """
    declared, dofs = tick_model.signals.declared, tick_model.plant.model.dof_names
    for name in (given, *signals):
        if name not in declared:
            raise InputError(f"there is no signal '{name}'{near_names(name, declared)}", "--response")
    joint = given.rpartition("/")[0]
    if joint not in dofs:
        raise InputError(
            f"'{given}' is of no joint; begin with a signal of the one that moves the others", "--response"
        )
    for contact in contact_states(tick_model, memory).touching:
        what = f"contact '{contact}' touches at this time, and the response would not have its force"
        raise InputError(
            f"{what}; give an --at at which nothing touches, or leave mechanism.contacts out", "--response"
        )
    F, inputs, C, through = linear_plant(tick_model, memory, joint, (given, *signals))
    systems = [PlantResponse(*balanced(F, b[:, None], C), d) for b, d in zip(inputs.T, through.T, strict=True)]
    system = max(systems, key=lambda each: each.movement, default=None)
    if system is None or not system.movement:
        raise InputError(f"'{given}' does not move with what the drive of '{joint}' is given", "--response")
    poles = system.zeros(0)
    pairs = [(_apart(poles, zeros), _apart(zeros, poles)) for zeros in map(system.zeros, range(1, len(C)))]
    omega = _frequencies(np.concatenate([each for pair in pairs for each in pair]), np.linalg.eigvals(system.A))
    shown = system.at(omega)
    for name in (name for k, name in enumerate(signals, 1) if not shown[:, k].any()):
        raise InputError(f"'{name}' does not move with '{given}' between two samples; name another one", "--response")
    return [
        SignalResponse(
            given,
            name,
            f"{declared[name].unit} per {declared[given].unit}",
            omega,
            shown[:, k] / shown[:, 0],
            _resonances(own_poles),
            _resonances(own_zeros),
        )
        for k, (name, (own_poles, own_zeros)) in enumerate(zip(signals, pairs, strict=True), 1)
    ]


@dataclass(frozen=True, eq=False)
class PlantResponse:
    """Signals by one input: A (n, n), B (n, 1), C (p, n), D (p,)."""

    A: Array
    B: Array
    C: Array
    D: Array

    def at(self, omega: Array) -> Array:
        """(m, p) complex at s = jω, ω (m,)."""
        s = 1j * omega[:, None, None]
        return (self.C @ np.linalg.solve(s * np.eye(len(self.A)) - self.A, self.B[None].astype(complex)))[
            :, :, 0
        ] + self.D

    @property
    def movement(self) -> float:
        """Of the first signal, over the frequencies of the poles."""
        speeds = np.abs(np.linalg.eigvals(self.A))
        omega = np.append(speeds[speeds > 0.0], 1.0)
        return float(np.mean(np.abs(self.at(omega)[:, 0])))

    def zeros(self, k: int) -> Array:
        """(m,) complex: of the k-th signal, where the input moves all but it."""
        from scipy.linalg import eigvals

        n = len(self.A)
        left = np.block([[self.A, self.B], [self.C[k : k + 1], np.reshape(self.D[k], (1, 1))]])
        right = np.zeros((n + 1, n + 1))
        right[:n, :n] = np.eye(n)
        alpha, beta = np.asarray(eigvals(left, right, homogeneous_eigvals=True))
        finite = np.abs(beta) > LEAST * np.abs(alpha)
        return alpha[finite] / beta[finite]


def linear_plant(
    tick_model: TickModel, memory: Array, joint: str, signals: Sequence[str]
) -> tuple[Array, Array, Array, Array]:
    """(F (n, n), b (n, m), C (p, n), D (p, m)) of signals, by m inputs: the effort requested of a joint, and what its
    drive holds between samples."""
    steps, plant, place = PlantSteps(tick_model), tick_model.plant, tick_model.layout.place
    memory, nx = with_first_calls(tick_model, memory), steps.nx
    t, x, request = (memory[place(of).where] for of in ("t", "plant", "request"))
    row, start = tick_model.row.unpack(memory[: tick_model.row.size]), memory[place("bumpless_start").where]

    def shown(z: Numeric) -> Numeric:
        moved = {"plant": plant.layout.unpack(z[:nx]), "request": z[nx:]}
        values = tick_model.signals.values(start, tick_model.row.pack(row | moved))
        return ops.array([ops.array(values[name]) for name in signals])

    by_state, by_request = steps.flow(float(t.item()), x, request)
    shows = Jacobian(shown, [(nx + steps.nv,)], "slope_signals")(np.concatenate([x, request]))
    flow, outputs = np.hstack([by_state, by_request]), np.asarray(shows)
    given = [*_held(tick_model, joint, flow), nx + plant.model.dof_index(joint)]
    return by_state, flow[:, given], outputs[:, :nx], outputs[:, given]


def _held(tick_model: TickModel, joint: str, flow: Array) -> list[int]:
    """Where in the state of the plant the drive of a joint has what it holds between samples."""
    plant = tick_model.plant
    sampled = plant.sampled_joints.get(joint)
    if sampled is None:
        return []
    places = {
        path[2]: where.start
        for path, (where, _) in plant.layout.places.items()
        if path[:2] == ("actuators", sampled.drive)
    }
    own = [where for name, where in places.items() if name.startswith(sampled.before)]
    return [where for where in own if not flow[where].any() and flow[:, where].any()]


def _apart(values: Array, others: Array) -> Array:
    """Those that are not among the others too."""
    left = list(others)
    found = []
    for value in values:
        near = [k for k, other in enumerate(left) if abs(other - value) <= SAME * max(abs(value), 1.0)]
        if near:
            left.pop(near[0])
        else:
            found.append(value)
    return np.array(found, dtype=complex)


def _resonances(values: Array) -> list[Resonance]:
    found = [Resonance(float(abs(z)), float(-z.real / abs(z))) for z in _pairs(values)]
    return sorted(found, key=lambda each: each.frequency)


def _pairs(values: Array) -> Array:
    """Of each lightly damped pair the one with the positive imaginary part."""
    return values[(np.imag(values) > 0.0) & (np.abs(np.real(values)) <= SHOWN * np.abs(values))]


def _frequencies(found: Array, poles: Array) -> Array:
    """(m,) about the resonances among the poles and zeros that were found, densely beside each; without one about all
    poles."""
    pairs = _pairs(found)
    speeds = np.abs(pairs) if len(pairs) else np.abs(poles[np.abs(poles) > LEAST])
    speeds = speeds if len(speeds) else np.array([TURN])
    beside = np.imag(pairs)[:, None] + np.abs(np.real(pairs))[:, None] * WIDTHS
    grid = np.geomspace(speeds.min() / BEYOND, speeds.max() * BEYOND, POINTS)
    return np.union1d(grid, beside[beside > grid[0]])
