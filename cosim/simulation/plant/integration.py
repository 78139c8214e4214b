"""The motion of the plant over an interval of time, without events: steps of an integrator, corrected for drift.

An integrator that estimates its error has a `StepControl`: the error of each dof is recorded, or the interval is
divided into steps that keep the tolerance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from cosim.core import ops
from cosim.core.compile.jacobian import ImplicitJacobian, Jacobian
from cosim.core.compile.routine import Routine
from cosim.core.compile.while_loop import repeated_while
from cosim.core.types import SETPOINTS, Numeric
from cosim.mechanics.integrators.methods import INTEGRATORS, Integrator, MovingAxes, System
from cosim.simulation.plant.contact_step import ContactStep
from cosim.simulation.plant.multirate import Multirate
from cosim.simulation.plant.plant import Plant
from cosim.simulation.plant.step_control import StepControl, largest

MAX_STEPS = 1000  # of an interval that is divided; accepted or not


@dataclass
class Integration:
    """The continuous motion of the plant between two events. integrator: its name; compiled: whether the parts are
    compiled as routines. x: the flat state of the plant; request (nv,): effort requested of the drives."""

    plant: Plant
    integrator: str
    compiled: bool = True
    substeps: int = 1  # of the drives, where they take steps of their own
    _samples: dict[tuple[str, ...], Callable[..., Numeric]] = field(default_factory=dict, init=False, repr=False)

    @property
    def method(self) -> Integrator:
        return INTEGRATORS[self.integrator]

    @property
    def _size(self) -> int:
        return self.plant.layout.size

    def _part(self, fn: Callable[..., Numeric], shapes: list[tuple[int, ...]], name: str) -> Callable[..., Numeric]:
        """fn as a routine of the compiled code, fn itself in an interpreted run."""
        return Routine(fn, shapes, name) if self.compiled else fn

    # --- the equation ---

    @cached_property
    def flow(self) -> Callable[..., Numeric]:
        """ẋ (nx,) of the plant from (t, x, request)."""
        return self._part(self._flow, [(), (self._size,), (self.plant.model.nv,)], "flow")

    def _flow(self, t: Numeric, x: Numeric, request: Numeric) -> Numeric:
        dx, _ = self.plant.flow(t, None, self.plant.layout.unpack(x), {"request": request})
        return self.plant.layout.pack(dx)

    @cached_property
    def slope(self) -> Callable[[Numeric, Numeric, Numeric], Numeric]:
        """∂ẋ/∂(t, x) (nx, 1 + nx) from ((t, x), request, ẋ)."""
        nx, nv, layout = self._size, self.plant.model.nv, self.plant.layout
        velocity = layout.place("velocity").where
        moving = velocity.stop - velocity.start
        if not (self.plant.model.equations.is_plain_tree and moving):
            explicit = Jacobian(lambda tx, request: self._flow(tx[0], tx[1:], request), [(1 + nx,), (nv,)], "slope")
            return lambda tx, request, rate: explicit(tx, request)

        def balance(tx: Numeric, acceleration: Numeric, request: Numeric) -> tuple[Numeric, Numeric]:
            dx, residual = self.plant.balance(tx[0], layout.unpack(tx[1:]), request, acceleration)
            return layout.pack(dx), residual

        implicit = ImplicitJacobian(balance, [(1 + nx,), (moving,), (nv,)], "slope")
        return lambda tx, request, rate: implicit(tx, rate[velocity], request)

    def system(self, request: Numeric) -> System:
        def jacobian(t: Numeric, x: Numeric, rate: Numeric) -> tuple[Numeric, Numeric]:
            j = self.slope(ops.concatenate([t, x]), request, rate)
            return j[:, 1:], j[:, 0]

        def rates(t: Numeric, x: Numeric) -> Numeric:
            return self.plant.coordinate_rates(t, self.plant.layout.unpack(x), request)

        return System(lambda t, x: self.flow(t, x, request), self.plant.coordinates, rates, jacobian, self._axes)

    @cached_property
    def _axes(self) -> MovingAxes | None:
        plant, layout = self.plant, self.plant.layout
        if not plant.model.equations.axes_turn:
            return None

        # given motions, the only ones that depend on time, have no such axes
        def standing(x: Numeric, rate: Numeric) -> Numeric:
            state, rates = layout.unpack(x), layout.unpack(rate)
            transport = plant.transport(state, plant.motion(0.0, state)[1])
            return layout.pack(rates | {"velocity": rates["velocity"] - transport[plant.unprescribed]})

        def turned(x: Numeric, h: Numeric) -> Numeric:
            state = layout.unpack(x)
            q, v, _ = plant.motion(0.0, state)
            return layout.pack(plant.with_motion(state, q, plant.turned(state, v, h * v)))

        return MovingAxes(layout.index("velocity"), standing, turned)

    # --- steps ---

    def sampled(self, t: Numeric, x: Numeric, request: Numeric, *setpoints: Numeric, dofs: tuple[str, ...]) -> Numeric:
        """The state after the samples of the actuators of these dofs; see `Plant.sample`."""
        return self._sample(dofs)(t, x, request, *setpoints) if dofs else x

    def _sample(self, dofs: tuple[str, ...]) -> Callable[..., Numeric]:
        if dofs not in self._samples:
            nv = (self.plant.model.nv,)

            def sample(t: Numeric, x: Numeric, request: Numeric, *setpoints: Numeric) -> Numeric:
                return self.plant.layout.pack(
                    self.plant.sample(t, self.plant.layout.unpack(x), request, setpoints, dofs)
                )

            self._samples[dofs] = self._part(sample, [(), (self._size,), nv, *([nv] * len(SETPOINTS))], "sample")
        return self._samples[dofs]

    def at_start(self, x: Numeric) -> Numeric:
        """The state at the start of a tick."""
        if self.plant.control is None:
            return x
        state = self.plant.layout.unpack(x)
        return self.plant.layout.pack(state | {"steps": self.plant.control.at_start(state["steps"])})

    def advance(self, t: Numeric, x: Numeric, request: Numeric, h: Numeric) -> Numeric:
        """The state at t + h: after one step, or after as many as the tolerance needs."""
        control = self.plant.control
        if control is not None and control.adaptive:
            return self._divided(t, x, request, h, control)
        return self._whole_step(t, x, request, h)

    @cached_property
    def _whole_step(self) -> Callable[..., Numeric]:
        shapes = [(), (self._size,), (self.plant.model.nv,), ()]
        # the equations of an implicit method are long, and samples need many substeps: they share their code
        shared = self.method.implicit or bool(self.plant.periods)
        return self._part(self.one_step, shapes, "implicit_step") if shared else self.one_step

    def one_step(self, t: Numeric, x: Numeric, request: Numeric, h: Numeric) -> Numeric:
        """The state at t + h after one step, whatever its error."""
        if self.method.multirate:
            return self.corrected(t + h, self._multirate.step(t, x, request, h))
        if self.method.moreau:
            return self.corrected(t + h, self._contact_step(t, x, request, h))
        end, error = self.method.step(self.system(request), t, x, h)
        if self.plant.control is not None:
            state, errors = self.plant.layout.unpack(end), self.plant.control.relative(error, end)
            before = state["steps"]["error"]
            found = [largest([before[dof], *errors[places]]) for dof, places in enumerate(self.plant.state_places)]
            end = self.plant.layout.pack(state | {"steps": {"error": ops.array(found)}})
        return self._at_end(t + h, self.corrected(t + h, end), request, h)

    @cached_property
    def _at_end(self) -> Callable[..., Numeric]:
        """The state at the end of a step, on the surfaces of exact contacts."""
        if not self.plant.exact:
            return lambda t, x, request, h: x

        def ended(t: Numeric, x: Numeric, request: Numeric, h: Numeric) -> Numeric:
            layout = self.plant.layout
            return layout.pack(self.plant.exact_contacts.at_end(t, layout.unpack(x), request, h))

        return self._part(ended, [(), (self._size,), (self.plant.model.nv,), ()], "contact_end")

    @cached_property
    def _multirate(self) -> Multirate:
        return Multirate(self.plant, self.substeps, self.compiled)

    @cached_property
    def _contact_step(self) -> Callable[..., Numeric]:
        """A step of `ContactStep`; one piece of code where it is made more than once."""
        step = ContactStep(self.plant, self.compiled).step
        shapes = [(), (self._size,), (self.plant.model.nv,), ()]
        return self._part(step, shapes, "contact_step") if self.plant.control is not None else step

    def _estimated(self, t: Numeric, x: Numeric, request: Numeric, h: Numeric) -> tuple[Numeric, Numeric]:
        """(the flat state at t + h before drift is corrected, its estimated error)."""
        if not self.method.doubles:
            return self.method.step(self.system(request), t, x, h)
        whole = self._contact_step(t, x, request, h)
        middle = self.corrected(t + 0.5 * h, self._contact_step(t, x, request, 0.5 * h))
        end = self._contact_step(t + 0.5 * h, middle, request, 0.5 * h)
        return end, end - whole

    def corrected(self, t: Numeric, x: Numeric) -> Numeric:
        """The state without what violates its constraints."""
        if not self.plant.drifts:
            return x
        return self.plant.layout.pack(self.plant.correct_drift(t, self.plant.layout.unpack(x)))

    # --- steps of chosen length ---

    def _divided(self, t: Numeric, x: Numeric, request: Numeric, h: Numeric, control: StepControl) -> Numeric:
        end, _, more = self._step_loop(ops.concatenate([ops.array([t, h]), x]), request)
        state = self.plant.layout.unpack(end[2:])
        refused = ops.where(more > 0.5, end[0], state["steps"]["refused"])
        return self.plant.layout.pack(state | {"steps": state["steps"] | {"refused": refused}})

    @cached_property
    def _step_loop(self) -> Callable[..., Numeric]:
        shapes = [(2 + self._size,), (self.plant.model.nv,)]
        return repeated_while(self._attempt, shapes, "attempt", MAX_STEPS, self.compiled)

    def _attempt(self, clock: Numeric, request: Numeric) -> tuple[Numeric, Numeric]:
        """A step towards the end, taken only if its error keeps the tolerance.

        clock (2 + nx,): time [s], remaining time [s], flat state. Returns the next one, and 1 while time remains."""
        control, order = self.plant.control, self.method.estimate
        assert control is not None and order is not None
        t, left, x = clock[0], clock[1], clock[2:]
        steps = self.plant.layout.unpack(x)["steps"]
        length = control.first_length(steps["length"], left)
        end, error = self._estimated(t, x, request, length)
        # energy too: a force that counteracts another one may have a kink where the motion has none
        estimated = np.concatenate([*self.plant.state_places, self.plant.energy_places])
        worst = largest(control.relative(error, end)[estimated])
        accepted = worst <= 1.0
        planned = control.next_length(length, worst, order + 1)
        # a step that ends with the interval says nothing against a longer one
        cut = ops.logical_and(accepted, length < steps["length"])
        planned = ops.where(cut, ops.maximum(planned, steps["length"]), planned)
        state = self.plant.layout.unpack(ops.where(accepted, self.corrected(t + length, end), x))
        counted = {name: steps[name] + 1.0 for name in ("count", "total")}
        state = state | {"steps": steps | {"length": planned} | counted}
        left = ops.where(accepted, left - length, left)
        now = ops.array([ops.where(accepted, t + length, t), left])
        return ops.concatenate([now, self.plant.layout.pack(state)]), ops.where(left > 0.0, 1.0, 0.0)
