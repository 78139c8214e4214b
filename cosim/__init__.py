"""Robotics control co-simulation with hardware in the loop: rigs compiled to machine code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cosim.apps.tuning.session import FailedTuning, TuningSession
    from cosim.apps.tuning.tune import tune
    from cosim.core.errors import InputError, InputErrors, RunError
    from cosim.mechanics.multibody import Model
    from cosim.rig import Rig, load_rig
    from cosim.rig.comparison import Comparison, compare
    from cosim.rig.gradient import Gradient
    from cosim.rig.plot_runs import plot_runs
    from cosim.rig.rollout_batch import RolloutBatch
    from cosim.rig.run import Run, StoppedRun, load_run, open_recording
    from cosim.simulation.tick.metrics import METRICS

__all__ = [
    "METRICS",
    "Comparison",
    "FailedTuning",
    "Gradient",
    "InputError",
    "InputErrors",
    "Model",
    "Rig",
    "RolloutBatch",
    "Run",
    "RunError",
    "StoppedRun",
    "TuningSession",
    "compare",
    "load_rig",
    "load_run",
    "open_recording",
    "plot_runs",
    "tune",
]

_HOMES = {
    **dict.fromkeys(("InputError", "InputErrors", "RunError"), "cosim.core.errors"),
    "Model": "cosim.mechanics.multibody",
    **dict.fromkeys(("Rig", "load_rig"), "cosim.rig"),
    **dict.fromkeys(("Comparison", "compare"), "cosim.rig.comparison"),
    "Gradient": "cosim.rig.gradient",
    "plot_runs": "cosim.rig.plot_runs",
    "RolloutBatch": "cosim.rig.rollout_batch",
    "METRICS": "cosim.simulation.tick.metrics",
    **dict.fromkeys(("Run", "StoppedRun", "load_run", "open_recording"), "cosim.rig.run"),
    **dict.fromkeys(("FailedTuning", "TuningSession"), "cosim.apps.tuning.session"),
    "tune": "cosim.apps.tuning.tune",
}


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first used, so that `import cosim` stays light."""
    if name == "__version__":
        from importlib.metadata import version

        return version("cosim")
    if name not in _HOMES:
        raise AttributeError(f"module 'cosim' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
