"""Robotics control co-simulation with hardware in the loop: rigs compiled to machine code.

The names of this module, of `cosim.plugin` for authors of plug-ins, and the errors of `cosim.errors` are promised; all
others may move.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cosim.apps.analysis.command import Analysis, analyze
    from cosim.apps.learning import learn
    from cosim.apps.tuning.session import FailedTuning, TuningSession
    from cosim.apps.tuning.tune import tune
    from cosim.core.errors import InputError, InputErrors, RunError
    from cosim.mechanics.formulations import load_formulation
    from cosim.mechanics.formulations.cartesian.absolute import integrate_bodies
    from cosim.mechanics.multibody import Model
    from cosim.mechanics.multibody.elastic.finite_elements import FiniteElements
    from cosim.mechanics.multibody.elastic.table import read_elastic_table
    from cosim.output.client import ControlClient, Subscriber, connect, subscribe
    from cosim.rig.gradient import Gradient
    from cosim.rig.rig import Rig, load_rig
    from cosim.rig.rollout_batch import RolloutBatch
    from cosim.rig.run.comparison import Comparison, compare
    from cosim.rig.run.plot_runs import plot_runs
    from cosim.rig.run.run import Run, StoppedRun, load_run, open_recording
    from cosim.simulation.coupling import BlockPart, CoupledParts, PowerBond
    from cosim.simulation.fmi import FmuPart, read_system
    from cosim.simulation.tick.metrics import METRICS

__all__ = [
    "METRICS",
    "Analysis",
    "BlockPart",
    "Comparison",
    "ControlClient",
    "CoupledParts",
    "FailedTuning",
    "FiniteElements",
    "FmuPart",
    "Gradient",
    "InputError",
    "InputErrors",
    "Model",
    "PowerBond",
    "Rig",
    "RolloutBatch",
    "Run",
    "RunError",
    "StoppedRun",
    "Subscriber",
    "TuningSession",
    "analyze",
    "compare",
    "connect",
    "integrate_bodies",
    "learn",
    "load_formulation",
    "load_rig",
    "load_run",
    "open_recording",
    "plot_runs",
    "read_elastic_table",
    "read_system",
    "subscribe",
    "tune",
]

# module -> its promised names, which are imported when they are first used, so that `import cosim` stays light
_PROMISED = {
    "cosim.apps.analysis.command": ("Analysis", "analyze"),
    "cosim.apps.learning": ("learn",),
    "cosim.apps.tuning.session": ("FailedTuning", "TuningSession"),
    "cosim.apps.tuning.tune": ("tune",),
    "cosim.core.errors": ("InputError", "InputErrors", "RunError"),
    "cosim.mechanics.formulations": ("load_formulation",),
    "cosim.mechanics.formulations.cartesian.absolute": ("integrate_bodies",),
    "cosim.mechanics.multibody": ("Model",),
    "cosim.mechanics.multibody.elastic.finite_elements": ("FiniteElements",),
    "cosim.mechanics.multibody.elastic.table": ("read_elastic_table",),
    "cosim.output.client": ("ControlClient", "Subscriber", "connect", "subscribe"),
    "cosim.rig.rig": ("Rig", "load_rig"),
    "cosim.rig.run.comparison": ("Comparison", "compare"),
    "cosim.rig.gradient": ("Gradient",),
    "cosim.rig.run.plot_runs": ("plot_runs",),
    "cosim.rig.rollout_batch": ("RolloutBatch",),
    "cosim.rig.run.run": ("Run", "StoppedRun", "load_run", "open_recording"),
    "cosim.simulation.coupling": ("BlockPart", "CoupledParts", "PowerBond"),
    "cosim.simulation.fmi": ("FmuPart", "read_system"),
    "cosim.simulation.tick.metrics": ("METRICS",),
}
_HOMES = {name: home for home, names in _PROMISED.items() for name in names}
# modules of users' files until now -> where their names are
_FORMER = {
    "types": "cosim.plugin",
    **{name: f"cosim.plugins.{name}" for name in ("actuators", "trajectories", "controllers", "drivers")},
    **{name: f"cosim.plugin ({name})" for name in ("ops", "units", "filters")},
    "client": "cosim (connect, subscribe)",
    "multibody": "cosim (Model) and cosim.plugin (laws)",
}


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("cosim")
    if name not in _HOMES:
        raise AttributeError(f"module 'cosim' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


class _FormerModules:
    """Refuses the import of a former module with its new place."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        package, _, module = name.partition(".")
        if package == __name__ and module in _FORMER:
            # without its attribute `name`, with which `from cosim import …` would put another error in its place
            raise ModuleNotFoundError(f"{name} is now in {_FORMER[module]}")


sys.meta_path.append(_FormerModules)  # pyright: ignore[reportArgumentType]
