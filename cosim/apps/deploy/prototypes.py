"""The functions of the code of a rig, as C declares them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cosim.apps.deploy.identifiers import identifier
from cosim.simulation.tick.tick_model import TickModel


class Prototype(NamedTuple):
    """arguments: type and name of each; what: in the words of the rig, key: the way to it there."""

    name: str
    result: str
    arguments: tuple[tuple[str, str], ...]
    about: str
    what: str = "a function of every rig"
    key: tuple[str | int, ...] = ()

    @property
    def declaration(self) -> str:
        return f"{self.result} {self.name}({', '.join(f'{kind}{name}' for kind, name in self.arguments)});"


_MEMORY, _KNOWN = ("double *", "memory"), ("const double *", "memory")
_TICK = ("int64_t ", "tick")
# result, arguments and purpose of the tasks of every rig
_TASKS = {
    "read": ("void", (_MEMORY, _TICK), "begin this tick with what is measured"),
    "guard": ("int32_t", (_MEMORY,), "0, or why the motors must be off until `arm`"),
    "write": ("void", (_MEMORY,), "the command for the motors; without effort if not armed or after a fault"),
    "step": ("void", (_MEMORY,), "the model until the next tick; call it after the command was sent"),
}


def prototypes(model: TickModel, name: str) -> Sequence[Prototype]:
    """Of code with stages; code of a rig with real motors has no whole ticks."""
    real = bool(model.plant.real)
    start = "the memory before `arm`" if real else "the memory at t = 0, armed"
    whole = Prototype(
        f"{name}_ticks",
        "int32_t",
        (_MEMORY, ("int64_t ", "first"), ("int32_t ", "count")),
        "so many ticks from number `first` on; how many are complete: fewer if the guard stopped the next one",
    )
    return [
        Prototype(f"{name}_reset", "void", (_MEMORY,), start),
        *([] if real else [whole]),
        Prototype(f"{name}_signals", "void", (_KNOWN, ("double *", "signals")), "all signals of the last tick"),
        Prototype(
            f"{name}_poses", "void", (_KNOWN, ("double *", "poses")), "(bodies, 3, 4) axes and origin of each body"
        ),
        *_stages(model, name),
    ]


def _stages(model: TickModel, name: str) -> Iterator[Prototype]:
    """In running order."""
    about = "start with this tick from what is measured: 0, or why not"
    yield Prototype(f"{name}_arm", "int32_t", (_MEMORY, _TICK), about)
    numbers = {loop.name: number for number, loop in enumerate(model.loops)}
    for task in model.tasks:
        if task.loop is not None:
            due = "" if task.ticks == 1 else f"; does nothing unless tick % {task.ticks} == {task.phase}"
            what, key = f"controller '{task.name}'", ("controllers", numbers[task.name], "name")
            function = f"{name}_controller_{identifier(task.name)}"
            yield Prototype(function, "void", (_MEMORY, _TICK), f"{what}{due}", what, key)
        elif task.calls:
            yield Prototype(f"{name}_{task.name}", *_TASKS[task.name])
