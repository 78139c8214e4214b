"""The command `cosim drives probe`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from cosim.apps.commissioning.expected import expected
from cosim.apps.commissioning.judgement import judge
from cosim.apps.commissioning.probe import ProbeSettings, effort_text, probe_joint, session_travel, way_text
from cosim.apps.commissioning.session import CommissioningSession
from cosim.core.errors import InputError, RunError
from cosim.output.console import quantity_of
from cosim.rig.moving_motors import add_to_record, record_path, wiring_text
from cosim.rig.rig import Rig

TRAVELS, WORDS = (1e-6, 0.5), "a way such as 2 deg or 1 mm, up to 0.5 rad or m"


def probe_rig(
    rig: Rig,
    joints: Sequence[str],
    settings: ProbeSettings,
    confirm: Callable[[Sequence[str]], object],
    session: CommissioningSession | None = None,
) -> None:
    """Probe the wiring of these real joints, or of all, one after the other; a line for each.

    confirm: receives what will move, and raises InputError unless that is confirmed. Raises RunError for a joint whose
    wiring is wrong or could not be judged.
    """
    session = CommissioningSession(rig, "probe") if session is None else session
    for name in joints:
        session.require(name)
    names = tuple(joints) or session.joints
    positions = session.check()
    confirm(list(what_moves(session, names, settings)))
    wiring = {name: spec.wiring[name] for name, spec in session.specs.items()}
    wrong: list[str] = []
    left = list(names)
    for name in names:
        left.remove(name)
        expect = expected(rig, positions)
        result, positions = probe_joint(session, name, expect[name], positions, settings)
        found = judge(result, session_travel(session, name, settings), wiring, expect)
        print(f"{name}: {found.text}", flush=True)
        row = {"wiring": wiring_text(session.specs[name], name), "passed": found.ok, "judgement": found.text}
        at = {"at": time.strftime("%Y-%m-%dT%H:%M:%S")}
        fit = {} if result.fit is None else result.fit._asdict()
        add_to_record(rig.spec.path, {name: {**row, **at, **fit}})
        wrong += [] if found.ok else [name]
        if result.stopped:
            break
    print(f"wrote    {record_path(rig.spec.path)}")
    if wrong:
        rest = f"; {', '.join(left)} not probed" if left else ""
        raise RunError(f"the wiring of {', '.join(wrong)} did not pass{rest}; motors are off", str(rig.spec.path))


def settings_of(effort: float, travel: str) -> ProbeSettings:
    """The settings that the options give; travel: empty for the default. Raises InputError."""
    if not 0.0 < effort <= 1.0:
        raise InputError(f"expected a fraction of the limit, above 0 and up to 1, got {effort:g}", "--effort")
    if not travel:
        return ProbeSettings(effort)
    turn, slide = ProbeSettings().travel
    try:
        return ProbeSettings(effort, (quantity_of(travel, "rad", "--travel", TRAVELS, WORDS), slide))
    except InputError:
        return ProbeSettings(effort, (turn, quantity_of(travel, "m", "--travel", TRAVELS, WORDS)))


def what_moves(session: CommissioningSession, names: Sequence[str], settings: ProbeSettings) -> list[str]:
    """The joints in their order, with the bounds of their motion."""
    lines = [f"{session.rig.spec.name}: each motor is switched on alone, all others stay off"]
    for name in names:
        spec, unit = session.specs[name], session.unit(name)
        largest = settings.effort * float(session.rig.limits.effort[session.rig.joints.index(name)])
        travel = session_travel(session, name, settings)
        where = f"{spec.plugin.name} node {spec.wiring[name].address}"
        bound = way_text(5.0 * travel, unit).removeprefix("+")
        way = way_text(travel, unit).removeprefix("+")
        lines.append(f"  {name} ({where}): ±{way} with up to {effort_text(largest, unit)}; stopped beyond {bound}")
    return [*lines, "keep clear of the machine, and support joints that gravity moves"]
