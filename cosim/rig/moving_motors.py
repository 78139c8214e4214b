"""The real motors that a run switches on, their limits, what stops them, and which of them were probed as they are
wired now: a file beside the rig."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, is_dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cosim.control.limits import LIMITS, STOP
from cosim.core.paths import read_file
from cosim.core.units import unit_sign
from cosim.rig.reading.driver_family import turns_at_power_off
from cosim.rig.sections.drivers import DriverSpec

if TYPE_CHECKING:
    from cosim.rig.wiring.wired_rig import WiredRig


def what_moves(rig: WiredRig) -> Iterator[str]:
    """The real motors that a run switches on, the limits in force, and what stops it."""
    yield f"{rig.spec.name} moves real motors:"
    for line in (*bus_lines(rig), *stop_lines(rig), *turn_lines(rig), *probe_lines(rig)):
        yield f"  {line}"


def probe_lines(rig: WiredRig) -> Iterator[str]:
    """The joints whose wiring, as it is now, has not passed a probe."""
    path = rig.spec.path
    if names := unprobed(path, rig.spec.drivers):
        yield f"wiring not probed: {', '.join(names)}; check it with cosim drives probe {path} first"


def turn_lines(rig: WiredRig) -> Iterator[str]:
    """The joints whose range is more than a turn of their drive, where whole turns may be lost at power-off."""
    found: dict[str, list[str]] = {"lost": [], "unknown": []}
    for driver in rig.spec.drivers:
        if ambiguous := rig.contexts[driver.name].ambiguous:
            found[turns_at_power_off(driver.family)] += ambiguous
    fix = f"lose whole turns at power-off; compare where they stand, or home them: cosim drives home {rig.spec.path}"
    if found["lost"]:
        yield f"positions of {', '.join(found['lost'])}: their drives {fix}"
    if found["unknown"]:
        yield f"positions of {', '.join(found['unknown'])}: their drives may {fix}"


def bus_lines(rig: WiredRig) -> Iterator[str]:
    """Buses of real drives, and the motors on them."""
    for driver in rig.spec.drivers:
        kind, connection = driver.plugin.name, driver.family.connection_name(driver.plugin.params)
        mode = "load motors" if driver.loads else f"{driver.mode} mode"
        yield f"driver {driver.name}: {kind} on {connection}, {mode}, bus load up to {rig.bus_loads[driver.name]:.0%}"
        for name, wired in driver.wiring.items():
            if driver.loads:
                limits = _limits(rig, name, driver.loads[name].effort)[0]
                yield f"  node {wired.address}, load of {name}: {limits}"
            else:
                yield f"  node {wired.address}, {name}: {real_limits(rig, name)}"


def real_limits(rig: WiredRig, name: str) -> str:
    """The limits of a real joint."""
    given, default = _limits(rig, name, rig.spec.joints[name].limits["effort"])
    return given + (f"; by default {default}" if default else "")


def _limits(rig: WiredRig, name: str, effort: float) -> tuple[str, str]:
    """The limits of a motor: from the rig, and defaults."""
    k, given = rig.joints.index(name), rig.spec.joints[name].limits
    bounds = {key: float(values[k]) for key, values in rig.guard.bounds.items()} | {"effort": effort}
    own, default = [], []
    for row in LIMITS:
        values = [bounds[key] for key in row.bound_keys]
        if any(map(isfinite, values)):
            shown = f"{row.key} {row.listed.format(limit=row.show(values, rig.plant.model.dof_units[k], 4))}"
            (own if any(isfinite(given[key]) for key in row.bound_keys) else default).append(shown)
    return unit_sign(", ".join(own)), unit_sign(", ".join(default))


def stop_lines(rig: WiredRig) -> Iterator[str]:
    """How a run with real motors is stopped."""
    guard, real = rig.spec.guard, np.isin(rig.joints, rig.plant.real)
    stopping = [row for row in LIMITS if (rig.guard.has_action(STOP, row.key) & real).any()]
    controlled = [row.key for row in stopping if row.stop_category == 1 and guard.deceleration is not None]
    if controlled:
        yield f"controlled stop at {guard.deceleration:.4g} rad/s^2: limits of {joined(controlled, 'or')}"
    if immediate := [row.key for row in stopping if row.key not in controlled]:
        yield f"immediate stop: limits of {joined(immediate, 'or')}"
    yield f"immediate stop: no feedback of a drive for {guard.stale * 1e3:.4g} ms, or a fault of a drive"
    if guard.soft_start:
        yield f"soft start: the effort limit ramps up within {guard.soft_start:.4g} s"
    estop = guard.estop
    inputs = [] if estop is None else [f"key {estop.key}"] * bool(estop.key) + [f"file {estop.file}"] * bool(estop.file)
    if estop and estop.id is not None:
        beat = "" if estop.heartbeat is None else f" or its silence for {estop.heartbeat:g} s"
        inputs.append(f"message {estop.id:#x} on {estop.interface} {estop.channel}{beat}")
    yield f"emergency stop: {joined(inputs, 'or')}" if inputs else "emergency stop: none but Ctrl-C; see guard.estop"


def joined(words: list[str], last: str) -> str:
    """`a, b <last> c`"""
    return f" {last} ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def record_path(rig: Path) -> Path:
    """arm.yaml -> arm.probe.json"""
    return rig.with_name(f"{rig.stem}.probe.json")


def wiring_text(spec: DriverSpec, joint: str) -> str:
    """How a joint is wired: its family, connection, address, direction, ratio and zero."""
    wired: Any = spec.wiring[joint]
    keys = asdict(wired) if is_dataclass(wired) and not isinstance(wired, type) else {}
    shown = {key: value for key, value in keys.items() if value is not None}
    return (
        f"{spec.plugin.name} on {spec.family.connection_name(spec.plugin.params)}: {json.dumps(shown, sort_keys=True)}"
    )


def unprobed(rig: Path, drivers: Iterable[DriverSpec]) -> list[str]:
    """The real joints whose present wiring has not passed a probe."""
    known = _read(record_path(rig))
    return [
        name
        for spec in drivers
        if not spec.loads
        for name in spec.joints
        if known.get(name, {}).get("wiring") != wiring_text(spec, name) or not known[name].get("passed")
    ]


def add_to_record(rig: Path, results: Mapping[str, Mapping[str, Any]]) -> None:
    """Write results by joint into the record of the rig: wiring, passed, judgement and figures."""
    path = record_path(rig)
    path.write_text(json.dumps(_read(path) | dict(results), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _read(path: Path) -> dict[str, Any]:
    """Empty where there is none, or none that can be read: its joints count as not probed."""
    try:
        data = json.loads(read_file(path))
    except (OSError, ValueError):
        return {}
    rows = data.items() if isinstance(data, dict) else ()
    return {name: row for name, row in rows if isinstance(row, dict)}
