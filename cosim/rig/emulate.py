"""Emulation of the drives of a rig: its simulated motors behind the protocols of its drivers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cosim.core.errors import InputError, SourceLocation, did_you_mean, plural
from cosim.core.servo.commanded import CommandedLoops
from cosim.core.units import TURN, show_time
from cosim.execution.hardware.emulation.fault_injection import KINDS, FaultInjection, FaultyConnection, InjectedFault
from cosim.execution.hardware.emulation.motors import EmulatedMotor, EmulatedMotors, MotorWiring
from cosim.execution.hardware.emulation.server import EmulatedConnection, EmulationServer
from cosim.execution.hardware.emulation.stepped_line import SteppedLine
from cosim.execution.timing.privileges import acquire, quiet_interpreter
from cosim.rig.reading.yaml_source import Override, read_value
from cosim.rig.sections.drivers import DriverSpec
from cosim.rig.sections.joints import JointSpec
from cosim.rig.sections.rig_spec import RigSpec, read_rig
from cosim.rig.wiring.driver_context import driver_contexts
from cosim.rig.wiring.emulated_plant import emulated_plant, servo_loops
from cosim.rig.wiring.wired_rig import WiredRig, require_joints
from cosim.simulation.loop.pacing import Pacing
from cosim.simulation.tick.virtual_plant import VirtualPlant

# drive limits relative to the guard's, where not given
EFFORT, VELOCITY = 1.5, 2.0
TORQUE_CONSTANT = 0.1  # N·m/A, where neither drive nor actuator has one


NO_LINES: Mapping[str, SteppedLine] = {}


def emulation_of(
    spec: RigSpec,
    interpret: bool | None = None,
    clock: Callable[[], int] = time.monotonic_ns,
    report: Callable[[str], object] = lambda message: None,
    lines: Mapping[str, SteppedLine] = NO_LINES,
) -> EmulationServer:
    """The emulated drives of a rig, not yet open. clock [ns]; report: receives messages on injected faults; lines: by
    driver, in place of its own connection.

    Raises InputError for a rig without drivers, InputErrors for parts that do not fit together.
    """
    require_joints(spec.joints, spec.path, "cosim emulate")
    if not spec.drivers:
        raise InputError("no drives to emulate; give the rig a section 'drivers'", spec.source.place(()))
    rig = WiredRig(emulated_plant(spec), interpret)
    step_ns = rig.spec.schedule.step_ns
    contexts = driver_contexts(spec, rig.joints, rig.limits, rig.plant.model.continuous)
    wired: list[MotorWiring] = []
    motors: list[EmulatedMotor] = []
    connections = []
    for number, driver in enumerate(spec.drivers):
        if driver.loads:
            what = f"driver '{driver.name}' has load motors, which the mechanism of this rig does not have"
            raise InputError(f"{what}; emulate a rig of the bench", spec.source.place(driver.at("loads")))
        own = []
        for name in driver.joints:
            motor, how = _motor(rig, spec, driver, name)
            own.append(motor)
            wired.append(how)
        motors += own
        emulated = tuple(spec.emulator.drives[name] for name in driver.joints)
        family, context = driver.family, replace(contexts[driver.name], emulated=emulated)
        if (line := lines.get(driver.name)) is not None:
            context = replace(context, ends=line.ends)
        drives = family.emulate(driver.plugin.params, context, own)
        link = family.device(driver.plugin.params, context)
        faulty = FaultyConnection(spec.schedule.seed + number)
        connections.append(EmulatedConnection(driver.name, link, drives, driver.joints, tuple(own), faulty))
    return EmulationServer(
        motors=EmulatedMotors(VirtualPlant(rig.tick_model), motors, wired, step_ns * 1e-9, spec.schedule.seed),
        connections=tuple(connections),
        faults=tuple(InjectedFault(fault) for fault in spec.emulator.faults),
        step_ns=step_ns,
        clock=clock,
        joints=rig.joints,
        report=report,
    )


def _motor(rig: WiredRig, spec: RigSpec, driver: DriverSpec, name: str) -> tuple[EmulatedMotor, MotorWiring]:
    wiring = driver.wiring[name]
    own, joint, k = spec.emulator.motors[name], spec.joints[name], rig.joints.index(name)
    scale = wiring.direction * wiring.ratio
    actuator: Any = joint.actuator.params if joint.actuator else None
    constant = getattr(wiring, "torque_constant", None)
    if constant is None and hasattr(actuator, "torque_constant"):  # beyond the ratio, a gear is part of the motor
        constant = actuator.torque_constant * actuator.ratio / abs(scale)
    resistance, inductance, lag = _windings(actuator)
    effort = own.max_effort if own.max_effort is not None else EFFORT * joint.limits["effort"]
    velocity = own.max_velocity if own.max_velocity is not None else VELOCITY * joint.limits["velocity"]
    motor = EmulatedMotor(
        torque_constant=constant or TORQUE_CONSTANT,
        max_effort=effort / abs(scale),
        max_velocity=velocity * abs(scale),
        max_temperature=own.max_temperature,
        voltage=spec.emulator.voltage,
        undervoltage=spec.emulator.undervoltage,
        temperature=spec.emulator.ambient,
        resistance=resistance,
        inductance=inductance,
        lag=lag,
        loops=_loops_of(joint, driver, scale, wiring.zero),
    )
    return motor, MotorWiring(
        k, scale, wiring.zero, spec.emulator.ambient, own.temperature_rise, own.thermal_time_constant
    )


def _loops_of(joint: JointSpec, driver: DriverSpec, scale: float, zero: float) -> CommandedLoops | None:
    """The sampled loops of the actuator where they are what the mode of the driver needs."""
    loops = servo_loops(joint)
    needed = {"effort": (), "velocity": ("velocity",), "position": ("velocity", "position")}[driver.mode]
    if loops is None or not needed or any(getattr(loops, name) is None for name in needed):
        return None
    every = 1
    if loops.velocity and loops.position:
        every = round(loops.velocity.rate / loops.position.rate)
    ratio = joint.actuator.params.ratio if joint.actuator else 1.0
    return CommandedLoops(loops, ratio, scale, zero, every)


def _windings(actuator: Any) -> tuple[float, float, float]:
    """Resistance [Ω], inductance [H] and time constant of the current [s] by the parameters of an actuator; 0: none.

    They are the same on both sides of a gear.
    """
    if not all(hasattr(actuator, name) for name in ("resistance", "inductance", "bandwidth")):
        return 0.0, 0.0, 0.0
    return actuator.resistance, actuator.inductance, 1.0 / (TURN * actuator.bandwidth)


def override_of(faults: Sequence[str]) -> list[tuple[str, str]]:
    """The override that replaces the faults of the rig, and its option; each text is the content of a mapping.

    Raises InputError for a text that is not one or has no known kind.
    """
    entries = [f"{{{text}}}" for text in faults]
    for text, entry in zip(faults, entries, strict=True):
        given = read_value(entry, SourceLocation("--fault"))
        if not isinstance(given, dict) or "kind" not in given:
            what = f"expected keys and values, as in 'kind: drop, fraction: 0.1', got '{text}'"
            raise InputError(what, "--fault")
        if given["kind"] not in KINDS:
            kind = str(given["kind"])
            raise InputError(f"no kind of fault '{kind}'{did_you_mean(kind, KINDS)}", "--fault")
    options = " ".join(f"--fault '{text}'" for text in faults)
    return [(f"emulator.faults=[{', '.join(entries)}]", options)] if entries else []


def emulate_rig(
    path: str | Path,
    overrides: Iterable[Override],
    duration: float | None,
    report: Callable[[str], object],
) -> EmulationServer:
    """Emulate the drives of a rig file for so long [s], or until Ctrl-C; `report` receives its messages.

    Raises InputErrors with all errors in the file, InputError for a connection that cannot be opened or that no other
    process can reach, and for a duration of 0 or less.
    """
    if duration is not None and duration <= 0.0:
        raise InputError(f"must be above 0 s, is {duration:g} s", "duration")
    spec = read_rig(path, overrides)
    for driver in spec.drivers:
        if getattr(getattr(driver.plugin.params, "bus", None), "interface", "") == "virtual":
            what = "no other process can reach a 'virtual' bus; use socketcan (with a vcan) or udp_multicast"
            raise InputError(what, spec.source.place(driver.at("bus", "interface")))
    emulation = emulation_of(spec, report=report)
    serve_rig(emulation, spec, duration, report)
    return emulation


def serve_rig(
    emulation: EmulationServer, spec: RigSpec, duration: float | None, report: Callable[[str], object]
) -> None:
    """Open the emulated drives of a rig, serve them for so long [s] or until Ctrl-C, and close them.

    Raises InputError for a connection that cannot be opened.
    """
    try:
        with quiet_interpreter(), acquire(Pacing()):  # takes up to a second: before it says that it is ready
            emulation.open()
            for line in connection_lines(spec):
                report(line)
            emulation.serve(duration)
    except KeyboardInterrupt:
        report("")  # after ^C
    finally:
        emulation.close()
    for line in _end_lines(emulation):
        report(line)


def connection_lines(spec: RigSpec) -> Iterator[str]:
    """The connections and nodes of the drives, and the faults."""
    yield f"{spec.name}  {spec.description}".rstrip()
    for driver in spec.drivers:
        kind, where = driver.plugin.name, driver.family.connection_name(driver.plugin.params)
        yield f"{driver.name}: {kind} on {where}"
        for joint, wired in driver.wiring.items():
            yield f"  node {wired.address}: {joint}"
    for fault in spec.emulator.faults:
        until = "" if fault.duration == float("inf") else f" for {fault.duration:g} s"
        after = f" after {fault.signal} {'rose above' if fault.factor > 0 else 'fell below'} {fault.bound:g}"
        when = f"at {fault.at:g} s" + (after if fault.signal else "")
        yield f"  {fault.kind.replace('_', ' ')}{_detail(fault)} at {fault.joint or fault.driver}: {when}{until}"
    yield "emulating; stop with Ctrl-C"


# kind of fault -> text of its parameter
_DETAILS: dict[str, Callable[[FaultInjection], str]] = {
    **dict.fromkeys(("drop", "duplicate", "corrupt", "reorder"), lambda fault: f"{fault.fraction:.4g} of the frames"),
    **dict.fromkeys(("delay", "late_answers"), lambda fault: show_time(fault.delay * 1e9)),
    "encoder_jump": lambda fault: f"by {fault.size:g}",
    "encoder_noise": lambda fault: f"of {fault.size:g}",
    **dict.fromkeys(("encoder_drift", "coupling_slip"), lambda fault: f"by {fault.rate:g} per s"),
    "brown_out": lambda fault: f"to {100.0 * fault.supply:.4g} % of the voltage",
    "hot_winding": lambda fault: f"{fault.temperature:g} degC",
    "motor_fault": lambda fault: fault.cause,
    **dict.fromkeys(("position_unit", "velocity_unit", "effort_unit"), lambda fault: f"times {fault.scale:g}"),
}


def _detail(fault: FaultInjection) -> str:
    return f" ({_DETAILS[fault.kind](fault)})" if fault.kind in _DETAILS else ""


def _end_lines(emulation: EmulationServer) -> Iterator[str]:
    seconds = emulation.steps * emulation.step_ns * 1e-9
    slip = f", {emulation.clock_slip_ns * 1e-9:.3g} s of clock slip" if emulation.clock_slip_ns else ""
    yield f"emulated {seconds:.6g} s{slip}"
    for connection in emulation.connections:
        unsent = f", {connection.unsent} {plural(connection.unsent, 'answer')} not sent" if connection.unsent else ""
        meter = connection.link.meter
        errors = f"{meter.errors} {plural(meter.errors, 'error')}"
        count = connection.unknown_count
        unknown = f", {count} unknown {plural(count, 'request')}" if count else ""
        yield f"{connection.name}: {meter.items_in} received, {meter.items_out} sent, {errors}{unsent}{unknown}"
