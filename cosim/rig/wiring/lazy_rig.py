"""What a run of compiled ticks needs of a rig, as plain data, and lazy parts of the rig that have it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from cosim.rig.sections.rig_spec import RigSpec
    from cosim.simulation.tick.tick_model import TickModel

KNOWN = "known"  # name of this data among the cached parts
_SPEC = ("name", "path", "description", "drivers")
_SECTIONS = {
    "schedule": ("step_ns", "rate", "duration_ns", "blend", "pacing"),
    "keep": ("signals", "every", "last", "budget", "file"),
    "telemetry": (
        *("publish", "rate", "signals", "decimation", "format", "key"),
        *("control", "control_timeout", "control_lost"),
    ),
    "recording": ("encoding", "numbers", "split_size", "split_time"),
    "guard": ("estop", "watchdog"),
}
_TICK_MODEL = (
    *("program", "layout", "row", "step", "step_ns", "nv", "deceleration", "has_controlled_stop"),
    *("untraceable", "python_loops", "native_loop", "coupled_in_python"),
)
_LIMITS = ("velocity",)


class LazyPart:
    """Some attributes of an object; the others come from the object itself, which is then made."""

    def __init__(self, known: Mapping[str, Any], complete: Callable[[], Any]) -> None:
        self.__dict__.update(known)
        self._complete = complete

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what copy and pickle look for
            raise AttributeError(name)
        return getattr(self._complete(), name)


def known_parts(spec: RigSpec, model: TickModel) -> dict[str, Any]:
    """See the module; for `lazy_parts`."""
    return {
        "joints": tuple(spec.joints),
        "spec": _picked(spec, _SPEC),
        "sections": {name: _picked(getattr(spec, name), keys) for name, keys in _SECTIONS.items()},
        "tick_model": _picked(model, _TICK_MODEL),
        "limits": _picked(model.limits, _LIMITS),
        "memory": model.memory(),
    }


def _picked(value: object, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names}


def lazy_parts(known: Mapping[str, Any], complete: Callable[[], Any]) -> tuple[RigSpec, TickModel]:
    """For `spec` and `tick_model` of a rig, from its known parts. complete: builds the rig."""

    def section(name: str) -> LazyPart:
        return LazyPart(known["sections"][name], lambda: getattr(complete().spec, name))

    limits = LazyPart(known["limits"], lambda: complete().tick_model.limits)
    model = known["tick_model"] | {"limits": limits, "memory": known["memory"].copy}
    sections = {name: section(name) for name in _SECTIONS}
    spec = LazyPart(known["spec"] | sections, lambda: complete().spec)
    return cast("RigSpec", spec), cast("TickModel", LazyPart(model, lambda: complete().tick_model))
