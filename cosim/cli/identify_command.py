"""The command `cosim identify`: its words as the request of an identification."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cosim.cli.command_tree import names_in
from cosim.core.errors import InputError

if TYPE_CHECKING:
    from cosim.rig.reading.yaml_source import Override

PER_JOINT = "per-joint"  # gains of the recorded signals, to be found


def identify(
    rig: Path,
    recordings: list[str],
    overrides: list[Override],
    check: list[str],
    fit: str,
    friction: Literal["ladder"] | None,
    motors: list[str],
    fixed: str,
    offset: bool,
    method: Literal["equation-error", "output-error"] | None,
    cutoff: str | None,
    training: float,
    output: str | None,
    report: str | None,
    json: str | None,
    excite: bool,
    duration: str | None,
    seed: int | None,
    anyway: bool,
    unit: list[str],
    column: list[str],
    gain: list[str],
    topic: str | None,
) -> None:
    """Find masses, inertias and friction from a recording."""
    from cosim.apps.identification.command import excite_rig, identify_rig
    from cosim.apps.identification.motion_file import motors_of
    from cosim.cli.table_options import table_options
    from cosim.output.console import duration_of, quantity_of
    from cosim.output.slow_code import named_when_slow

    wanted = names_in(fit) or ["inertia", "friction"]
    if offset:
        wanted = [*wanted, "offset"]
    if PER_JOINT in gain:
        wanted, gain = [*wanted, "gain"], [of for of in gain if of != PER_JOINT]
    if excite:
        extra = {"--check": check or None, "--report": report, "--json": json}
        extra |= {"--cutoff": cutoff, "--method": method, "--friction": friction, "--fixed": fixed or None}
        extra |= {"--motor": motors or None}
        for option in (option for option, value in extra.items() if value is not None):
            raise InputError("is for finding numbers; --excite designs a motion", option)
        seconds = 20.0 if duration is None else duration_of(duration)
        table = table_options(unit, column, topic, gain)
        with named_when_slow():
            excite_rig(rig, overrides, wanted, seconds, output, seed or 0, recordings, table)
        return
    if not recordings and not check:
        raise InputError("give a recording, or --excite for a motion to record", "cosim identify")
    for option, given in (("--duration", duration), ("--seed", seed)):
        if given is not None:
            raise InputError("is for --excite", option)
    words = "a frequency such as 10 or 10 Hz"
    hertz = None if cutoff is None else quantity_of(cutoff, "Hz", "--cutoff", (0.0, math.inf), words)
    with named_when_slow():
        table = table_options(unit, column, topic, gain)
        identify_rig(
            rig,
            recordings,
            check,
            overrides,
            wanted,
            hertz,
            training,
            output,
            report,
            json,
            method,
            anyway,
            table,
            friction,
            names_in(fixed),
            motors_of(motors),
        )
