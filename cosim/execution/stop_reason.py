"""Why a run was stopped, by the guard or by the state of the plant: one sentence with the fix."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cosim.control.bumpless_start import BumplessStart
from cosim.control.limits import CODES, LIMIT_OF, NOT_FINITE, STALE, GuardLimit
from cosim.core.types import State, requested_effort
from cosim.core.units import quantity_unit
from cosim.execution.divergence import likely_cause
from cosim.execution.rig_state import PLAUSIBLE, RigState
from cosim.mechanics.multibody.contact.contact_solver import MOST_PASSES
from cosim.simulation.plant.contact_limits import CONTACT_LIMITS, judged
from cosim.simulation.plant.contact_state import MOST_UNSOLVED
from cosim.simulation.plant.contradictions import contradiction
from cosim.simulation.plant.event_stepper import PlantFault, is_tripped
from cosim.simulation.plant.integration import MAX_STEPS
from cosim.simulation.plant.plant import Plant
from cosim.simulation.tick.coupled_plant import Coupling, CouplingFault
from cosim.simulation.tick.tick_functions import FIRST_OF_PARTS
from cosim.simulation.tick.tick_model import TickModel

# rad, m or per s; a joint whose motion is within this did not make an effort overflow
OVERFLOWING = 1e100
# element of a constraint Jacobian below which the constraint does not act on a dof
KEYS = {code: key for key, code in CODES.items()}
PROJECTION = "mechanism.loop_closure.drift: projection"


# limits that a joint may exceed because a unit is wrong, before that is proven; blocks of samples that show it then
MOVED_WRONGLY, FEW_BLOCKS = ("position", "velocity", "tracking", "stall", "frozen"), 4
# limits that a run exceeds when it diverges
DIVERGED = ("position", "velocity", "tracking")


class Reason(NamedTuple):
    """What happened and the usual fix. joint: whose divergence may have a cause with a fix of its own; -1: of none in
    particular, None: there is no divergence."""

    what: str
    fix: str
    joint: int | None = None


def stop_reason(tick_model: TickModel, tick: int, memory: np.ndarray, rows: np.ndarray) -> str:
    """memory: of the tick at whose end the guard or the plant has a fault; rows (k, nr): up to that tick."""
    parts, t = tick_model.layout.unpack(memory), tick * tick_model.step
    fault = float(tick_model.plant_fault(t, tick_model.plant.layout.pack(parts["plant"])))
    stopped = parts["controlled_stop"]["reason"] and parts["fault"] == parts["controlled_stop"]["reason"]
    if float(parts["fault"]) > FIRST_OF_PARTS:
        reason = _other_fault(tick_model, tick, parts, float(parts["fault"]))
    elif NOT_FINITE in parts["guard_fault"]:
        reason = _guard_fault(tick_model, parts)
    elif fault == NOT_FINITE + PlantFault.CONSTRAINT_VIOLATED:
        reason = _constraint_violated(tick_model, t, parts)
    elif fault in fault_templates(tick_model):
        reason = _other_fault(tick_model, tick, parts, fault, -1 if fault == NOT_FINITE + PlantFault.NO_STEP else None)
    else:
        reason = _controlled_stop(tick_model, parts) if stopped else _guard_fault(tick_model, parts)
    cause = "" if reason.joint is None else likely_cause(RigState(tick_model, tick, parts, rows, reason.joint))
    return f"stopped at tick {tick} (t = {t:.6g} s): {reason.what}; {cause or reason.fix}"


def _guard_fault(tick_model: TickModel, parts: State) -> Reason:
    """The guard fault that comes last in the order of precedence."""
    k = int(np.argmax(parts["guard_fault"]))
    code, name = int(parts["guard_fault"][k]), tick_model.plant.model.dof_names[k]
    if code == STALE:
        age, limit = (1e3 * float(values[k]) for values in (parts["age"], tick_model.guard.stale))
        what = f"has sent no feedback for {age:.6g} ms, more than the {limit:.6g} ms of guard.stale"
        return Reason(f"joint '{name}' {what}", "check its power, its cable and its bus")
    if code == NOT_FINITE:
        return _not_finite(tick_model, parts, k)
    row = LIMIT_OF[KEYS[code]]
    what, fix = row.reason.format(**figures(tick_model, parts, k, row)).split("; ", 1)
    if row.key in MOVED_WRONGLY and (units := tick_model.unit_finding(parts, k, FEW_BLOCKS))[0]:
        return Reason(f"joint '{name}' {what}", f"it {units[0]}; {units[1]}")
    return Reason(f"joint '{name}' {what}", fix, k if row.key in DIVERGED else None)


def _controlled_stop(tick_model: TickModel, parts: State) -> Reason:
    """The guard fault that started a controlled stop which has finished."""
    k = int(np.argmax(parts["controlled_stop"]["first_guard_fault"]))
    row, name = LIMIT_OF[KEYS[int(parts["controlled_stop"]["reason"])]], tick_model.plant.model.dof_names[k]
    stop = BumplessStart.of(parts["bumpless_start"], tick_model.nv).stop
    assert stop is not None
    what = row.controlled_stop.format(**figures(tick_model, parts, k, row))
    return Reason(
        f"joint '{name}' {what} at t = {float(stop.t):.6g} s, followed by a controlled stop of all joints",
        f"change the trajectory or joints.{name}.limits",
        -1 if row.key in DIVERGED else None,
    )


def figures(tick_model: TickModel, parts: State, k: int, row: GuardLimit) -> dict[str, str]:
    """The fields of the messages of a limit: the name of joint k, the limit, and its signals with units."""
    model, guard, measured = tick_model.plant.model, tick_model.guard, parts["measured"]
    unit, position, velocity = model.dof_units[k], float(measured["position"][k]), float(measured["velocity"][k])
    effort_unit = quantity_unit("joint effort", unit)
    units, judged = tick_model.unit_finding(parts, k), parts.get("judged_velocity", measured["velocity"])
    reported, velocity = velocity, float(judged[k])
    moves = f"{velocity:.6g} {unit}/s"
    if velocity != reported:
        moves += f" by its positions (it reports {reported:.6g} {unit}/s)"
    with np.errstate(all="ignore"):  # the state may have diverged
        effort = float(requested_effort(parts["command"], measured)[k])
        effort_rate = abs(effort - parts["previous_request"][k]) / tick_model.step
        power = abs(effort * velocity)
    return {
        "joint": model.dof_names[k],
        "limit": row.show([guard.bounds[key][k] for key in row.bound_keys], unit),
        "position": f"{position:.6g} {unit}",
        "velocity": moves,
        "effort": f"{effort:.6g} {effort_unit}",
        "commanded_effort": f"{_commanded_effort(tick_model, parts, k):.6g} {effort_unit}",
        "effort_rate": f"{effort_rate:.6g} {effort_unit}/s",
        "power": f"{power:.6g} W",
        "temperature": f"{parts['temperature'][k]:.6g} degC",
        "unseen_motion": f"{parts['standstill']['unseen_motion'][k]:.6g} {unit}",
        "residual_energy": f"{parts['residual_energy'][k]:.6g} J",
        "load_residual_energy": f"{parts['load_residual_energy'][k]:.6g} J",
        "wall_energy": f"{_wall_energy(parts, k):.6g} J",
        "shadow_effort": f"{parts['shadow']['effort'][k]:.6g} {effort_unit}",
        "shadow_drive": f"{parts['shadow']['drive'][k]:.6g} {effort_unit}",
        "shadow_position": f"{parts['shadow']['position'][k]:.6g} {unit}",
        "shadow_slip": f"{parts['shadow']['slip'][k]:.6g} {unit}",
        "units": units[0],
        "units_check": units[1],
        "tracking_error": f"{abs(parts['reference_position'][k] - position):.6g} {unit}",
    }


def _wall_energy(parts: State, k: int) -> float:
    """J, that virtual contacts have given to real joints; 0 without them."""
    return float(parts["haptic"]["energy"][k]) if "haptic" in parts else 0.0


def _commanded_effort(tick_model: TickModel, parts: State, k: int) -> float:
    """The effort that the controller of joint k requests, before the guard cuts it; 0 without a controller."""
    measured = {name: float(parts["measured"][name][k]) for name in ("position", "velocity")}
    for loop in tick_model.loops:
        for place in np.flatnonzero(loop.index == k):
            command = {name: values[place] for name, values in parts["controller_commands"][loop.name].items()}
            return float(requested_effort(command, measured))
    return 0.0


def _not_finite(tick_model: TickModel, parts: State, k: int) -> Reason:
    unit, name = tick_model.plant.model.dof_units[k], tick_model.plant.model.dof_names[k]
    position, velocity = (float(parts["measured"][name][k]) for name in ("position", "velocity"))
    largest = float(np.max(np.abs([position, velocity])))  # NaN if one is
    what = f"is not finite (position {position:.6g} {unit}, velocity {velocity:.6g} {unit}/s)"
    if largest < OVERFLOWING:
        what = f"is commanded an effort that is not finite (at {position:.6g} {unit}, {velocity:.6g} {unit}/s)"
    if largest < PLAUSIBLE:  # else the motion has diverged before
        return Reason(f"joint '{name}' {what}", "check its controller")
    # the causes are looked for in the plant without its parts
    joint = k if tick_model.coupling is None else None
    return Reason(f"joint '{name}' {what}", fix_of_divergence(tick_model, name), joint)


def fix_of_divergence(model: TickModel, name: str) -> str:
    """What usually keeps the motion of a joint finite."""
    if name in model.plant.periods:
        return f"try lower gains in joints.{name}.actuator.loops"
    parts_too = "" if model.coupling is None else "a smaller step of the parts, "
    return f"try {parts_too}{finer_steps(model.plant)}"


def finer_steps(plant: Plant) -> str:
    """What makes steps of a plant more accurate; contacts are not left to another integrator."""
    if plant.moreau or plant.exact:
        return "a smaller schedule.step or more schedule.substeps"
    return "a smaller schedule.step, more schedule.substeps or schedule.integrator: rosenbrock"


def fault_templates(model: TickModel) -> dict[float, str]:
    """By the code of a fault of the plant or of a part: the sentence with its fix, with the fields of `_fields`. Where
    the plant cannot be asked, that of a violated constraint, which has no fields."""
    control, step, bounds = model.plant.control, "a smaller schedule.step", model.plant.contact_bounds
    more_passes = " or more schedule.contact.passes" * (bounds.passes < MOST_PASSES)
    most, fix = ", most of it at contact '{missed}'", "give contacts a stiffness in place of 'rigid'"
    most, fix = ("", "take 'exact' out") if model.plant.exact else (most, fix)
    plant = {
        PlantFault.CONSTRAINT_VIOLATED: f"a constraint is violated; try {step}, or {PROJECTION}",
        PlantFault.ENDLESS_EVENTS: "events trigger each other without end at t = {endless} s: {events}; change their"
        " conditions so that none triggers the others again",
        PlantFault.CONTACT_LIMIT: "{contact_limit}",
        PlantFault.CONTACTS_UNSOLVED: f"the solver of the contacts has left more than {bounds.unsolved:g} m/s for"
        f" {MOST_UNSOLVED} steps in a row, now {{residual}} m/s{most}; {fix}, or try {step}{more_passes}",
        PlantFault.TRIPPED: "{tripped}; brake more slowly, take less, or give it another source, chopper or capacitor",
    }
    if control is not None:
        plant[PlantFault.NO_STEP] = (
            f"{MAX_STEPS} steps did not take {model.integrator} from t = {{refused}} s to the end of the tick within a"
            f" schedule.tolerance of {control.tolerance:g}; raise the tolerance, or look for a force or a gain that"
            " changes abruptly"
        )
    found = {NOT_FINITE + float(fault): text for fault, text in plant.items()}
    if (coupling := model.coupling) is not None:
        shorter = _shorter_steps(coupling)
        correction = "" if coupling.scheme.control is not None else ", a couplings.correction"
        found |= {
            FIRST_OF_PARTS + float(CouplingFault.RESIDUAL_ENERGY): "the residual energy of bond '{bond}' is"
            f" {{bond_energy}} J, beyond its limit of {{bond_limit}} J; try {shorter}{correction} or another"
            " couplings.order",
            FIRST_OF_PARTS + float(CouplingFault.NOT_FINITE): f"output '{{output}}' is not finite; try {shorter}, or a"
            " smaller step of the part",
        }
    return found


def _other_fault(tick_model: TickModel, tick: int, parts: State, code: float, joint: int | None = None) -> Reason:
    what, fix = fault_templates(tick_model)[code].format_map(_Fields(tick_model, tick, parts)).split("; ", 1)
    return Reason(what, fix, joint)


class _Fields(dict[str, str]):
    """What the templates of a model say of a memory, each computed when a template has it."""

    def __init__(self, tick_model: TickModel, tick: int, parts: State) -> None:
        super().__init__()
        self._model, self._tick, self._parts = tick_model, tick, parts

    def __missing__(self, name: str) -> str:
        return getattr(self, f"_{name}")()

    def _refused(self) -> str:
        return f"{float(self._parts['plant']['steps']['refused']):.6g}"

    def _endless(self) -> str:
        return f"{float(self._parts['plant']['modes']['endless']):.6g}"

    def _contact_limit(self) -> str:
        """The contact that is farthest beyond a limit, relative to it."""
        plant, t = self._model.plant, self._tick * self._model.step
        found = judged(plant, t, self._parts["plant"])
        worst = max(found, key=lambda one: float(one.value) / one.bound.value)
        limit = CONTACT_LIMITS[worst.bound.key]
        value, bound = (f"{float(x):.6g} {limit.unit}" for x in (worst.value, worst.bound.value))
        return f"contact '{worst.contact}' {limit.reason.format(value=value, limit=bound)}; {limit.fix}"

    def _residual(self) -> str:
        return f"{float(self._parts['plant']['contacts']['residual']):.3g}"

    def _missed(self) -> str:
        """The contact that is farthest from its law."""
        contacts = self._model.plant.contacts.contacts.members
        return contacts[int(np.argmax(self._parts["plant"]["contacts"]["miss"]))].name

    def _events(self) -> str:
        """Those that fired repeatedly within one instant."""
        fired = self._parts["plant"]["modes"]["fired"]
        indicators = zip(self._model.plant.modes.indicators, fired > 0.5 * fired.max(), strict=True)
        return " and ".join(f"'{name}'" for name in dict.fromkeys(one.name for one, often in indicators if often))

    def _tripped(self) -> str:
        """The first limit that an actuator is beyond."""
        found = self._parts["plant"]["actuators"]
        name, limit = next((name, limit) for name, limit in self._model.plant.trips if is_tripped(limit, found[name]))
        value = limit.factor * float(found[name][limit.state])
        above = value > limit.largest
        side, key, bound = ("above", "largest", limit.largest) if above else ("below", "lowest", limit.lowest)
        where = f"supplies.{name}.{key}_{limit.what}"
        return f"supply '{name}' trips: its {limit.what} of {value:.4g} {limit.unit} is {side} {where}, {bound:.4g}"

    def _worst(self) -> int:
        """The bond whose residual energy is farthest beyond its limit."""
        assert self._model.coupling is not None
        return int(np.argmax(np.abs(self._parts["coupling"]["energy"]) / self._model.coupling.residual_limits))

    def _bond(self) -> str:
        assert self._model.coupling is not None
        return self._model.coupling.couplings.bonds[self._worst()].name

    def _bond_energy(self) -> str:
        return f"{float(self._parts['coupling']['energy'][self._worst()]):.4g}"

    def _bond_limit(self) -> str:
        assert self._model.coupling is not None
        return f"{self._model.coupling.residual_limits[self._worst()]:g}"

    def _output(self) -> str:
        """The first one that is not finite."""
        places, values = self._model.coupled_step.master.outputs.places, self._parts["coupling"]["values"][0]
        return next("/".join(path) for path, (where, _) in places.items() if not np.isfinite(values[where]).all())


def _shorter_steps(coupling: Coupling) -> str:
    """What makes the steps of the coupling shorter."""
    if coupling.scheme.control is not None:
        return "smaller tolerances of couplings.step_control"
    return "a smaller schedule.step" if coupling.first_step is None else "a smaller couplings.step"


def _constraint_violated(tick_model: TickModel, t: float, parts: State) -> Reason:
    """The constraint with the largest violation, and what it contradicts."""
    plant, model, state = tick_model.plant, tick_model.plant.model, parts["plant"]
    violations = [float(violation) for violation in tick_model.stepping.constraint_violations(t, state)]
    worst = int(np.argmax(violations))
    rows = [
        (coupling.name, row.residual_unit)
        for coupling in model.equations.constraints.members
        for row in coupling.law.rows
    ]
    name, unit = rows[worst]
    allowed = model.equations.constraints.inexact.get(worst, 0.0)
    what = f"constraint '{name}' is violated by {violations[worst] + allowed:.3g} {unit}"
    if found := contradiction(plant, t, state, name).text(name, model.dof_names):
        return Reason(f"{what}: {found}", "change that or try a smaller schedule.step")
    return Reason(what, f"try a smaller schedule.step, or {PROJECTION}", -1)
