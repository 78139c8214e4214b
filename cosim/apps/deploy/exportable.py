"""Which rigs and parts are machine code only, as files for other machines need it."""

from __future__ import annotations

from typing import NamedTuple

from cosim.core.errors import InputError, SourceLocation
from cosim.rig.wiring.wired_rig import WiredRig
from cosim.simulation.coupling.block_part import BlockPart


class FileKind(NamedTuple):
    """A kind of file that holds a rig as machine code. name: with its article; command: that makes it; instead: what to
    do with a part that is an FMU; motors: whether a rig may have real ones."""

    name: str
    command: str
    instead: str = "take it out"
    motors: bool = False

    @property
    def needs(self) -> str:
        return f"{self.name} holds machine code only"


def check_rig(rig: WiredRig, kind: FileKind) -> None:
    """Raises InputError, at the place in the rig, for one whose ticks are not machine code."""
    if rig.hardware and not kind.motors:
        raise InputError(
            f"real motors cannot be in {kind.name}; {kind.needs}: take the drivers out", rig.place(("drivers",))
        )
    if rig.run_spec.guard.estop is not None:
        what = f"an emergency stop cannot be in {kind.name}; {kind.needs}: take it out"
        raise InputError(what, rig.place(("guard", "estop")))
    check_machine_code(rig, kind)
    for number, loop in enumerate(rig.tick_model.loops):
        if why := rig.tick_model.untraceable.get(loop.name):
            what = f"controller '{loop.name}' runs in Python ({why}); {kind.needs}: write it with cosim.plugin.ops"
            raise InputError(what, rig.place(("controllers", number)))
    if rig.tick_model.coupling is not None:
        for name in rig.tick_model.coupling.parts:
            check_part(rig, name, kind)
    if not (rig.native or rig.hardware):
        raise InputError(f"parts of a tick run in Python; {kind.needs}: take them out", str(rig.spec.path))


def check_machine_code(rig: WiredRig, kind: FileKind) -> None:
    """Raises InputError for a rig that is interpreted."""
    if rig.interpret:
        raise InputError(f"the rig is interpreted; {kind.needs}: unset COSIM_INTERPRET", kind.command)


def check_part(rig: WiredRig, name: str, kind: FileKind) -> None:
    """Raises InputError, at its place in the rig, for a part that is no machine code."""
    assert rig.tick_model.coupling is not None
    part = rig.tick_model.coupling.parts[name]
    if not isinstance(part, BlockPart):
        fix = f"{kind.name} holds machine code of this program only: {kind.instead}"
        what = f"part '{name}' is an FMU itself; {fix}"
        raise InputError(what, place_of_part(rig, name))
    if why := part.untraceable:
        what = f"part '{name}' runs in Python ({why}); {kind.needs}: write it with cosim.plugin.ops"
        raise InputError(what, place_of_part(rig, name))


def place_of_part(rig: WiredRig, name: str) -> SourceLocation | None:
    return rig.place(next(part.key for part in rig.spec.parts if part.name == name))
