"""The functions of the code of a rig, as C declares them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cosim.deploy.identifiers import identifier
from cosim.tick.tick_model import TickModel


class Prototype(NamedTuple):
    """arguments: type and name of each."""

    name: str
    result: str
    arguments: tuple[tuple[str, str], ...]
    about: str

    @property
    def declaration(self) -> str:
        return f"{self.result} {self.name}({', '.join(f'{kind}{name}' for kind, name in self.arguments)});"


_MEMORY, _KNOWN = ("double *", "memory"), ("const double *", "memory")
_TICK = ("int64_t ", "tick")


def prototypes(model: TickModel, name: str, stages: bool) -> Sequence[Prototype]:
    """stages: whether the code has them; a rig with real motors has no whole ticks."""
    real = bool(model.plant.real)
    start = "the memory before `arm`" if real else "the memory at t = 0, armed"
    whole = [
        Prototype(
            f"{name}_ticks",
            "int32_t",
            (_MEMORY, ("int64_t ", "first"), ("int32_t ", "count")),
            "so many ticks from number `first` on; how many are complete: fewer if the guard stopped the next one",
        )
    ]
    return [
        Prototype(f"{name}_reset", "void", (_MEMORY,), start),
        *([] if real else whole),
        Prototype(f"{name}_signals", "void", (_KNOWN, ("double *", "signals")), "all signals of the last tick"),
        Prototype(
            f"{name}_poses", "void", (_KNOWN, ("double *", "poses")), "(bodies, 3, 4) axes and origin of each body"
        ),
        *(_stages(model, name) if stages else []),
    ]


def _stages(model: TickModel, name: str) -> list[Prototype]:
    """In running order."""
    found = [
        Prototype(
            f"{name}_arm", "int32_t", (_MEMORY, _TICK), "start with this tick from what is measured: 0, or why not"
        )
    ]
    fixed = {
        "read": ("void", (_MEMORY, _TICK), "begin this tick with what is measured"),
        "guard": ("int32_t", (_MEMORY,), "0, or why the motors must be off until `arm`"),
        "write": ("void", (_MEMORY,), "the command for the motors; without effort if not armed or after a fault"),
        "step": ("void", (_MEMORY,), "the model until the next tick; after the command was sent"),
    }
    for task in model.tasks:
        if task.loop is not None:
            due = "" if task.ticks == 1 else f"; due when tick % {task.ticks} == {task.phase}, else it does nothing"
            about = f"controller '{task.name}'{due}"
            found.append(Prototype(f"{name}_controller_{identifier(task.name)}", "void", (_MEMORY, _TICK), about))
        elif task.calls:
            result, arguments, about = fixed[task.name]
            found.append(Prototype(f"{name}_{task.name}", result, arguments, about))
    return found
