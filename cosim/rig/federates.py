"""A rig whose parts run in federates of HELICS, and the run of such a federate, for which a run starts the process
`python -m cosim.rig.federates PARENT RIG NAME BROKER [OVERRIDE …]`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cosim.core.errors import CosimError, InputError, did_you_mean
from cosim.rig.reading.yaml_source import Override
from cosim.rig.rig import Rig, load_rig

if TYPE_CHECKING:
    from cosim.simulation.tick.coupled_plant import Coupling


def with_federates(rig: Rig, path: str | Path, overrides: Iterable[Override] = (), address: str | None = None) -> Rig:
    """The rig with its parts in federates. path, overrides: what it was loaded from; address: HOST:PORT of the broker
    where the others join, None for a broker and processes of its own. Raises InputError: no part has a federate, the
    address is invalid, or HELICS is not installed."""
    from cosim.simulation.federation import Federation, federated
    from cosim.simulation.federation.federate import checked_address, load_helics
    from cosim.simulation.tick.coupled_plant import signals_of_plant

    coupling = _coupling_of(rig, path)
    broker = checked_address(address, "--helics") if address else None
    load_helics()
    texts = [each if isinstance(each, str) else each[0] for each in overrides]

    def command(name: str, at: str) -> Sequence[str]:
        words = [str(os.getpid()), str(path), name, at, *texts]
        return [sys.executable, "-P", "-m", "cosim.rig.federates", *words]

    model, mechanism = rig.tick_model, rig.plant.model
    _, outputs = signals_of_plant(mechanism.dof_names, mechanism.dof_units)
    found = rig.with_ticks(
        replace(model, coupling=federated(Federation(coupling, outputs, model.step, broker, command)))
    )
    found.cached = rig.cached.of_variant()
    return found


def run_federate(
    path: str | Path, name: str, address: str, overrides: Iterable[Override], watch: Callable[[], None] = lambda: None
) -> None:
    """Run the parts of one federate until the run of the mechanism ends. watch: called while it waits. Raises
    InputError: no part has this federate, or see `with_federates`; RunError: see
    `cosim.simulation.federation.serve`."""
    from cosim.simulation.federation import serve
    from cosim.simulation.federation.federate import checked_address, load_helics

    broker = checked_address(address, "--broker")
    load_helics()
    rig = load_rig(path, overrides)
    coupling = _coupling_of(rig, path)
    names = sorted(set(coupling.federates.values()))
    if name not in names:
        what = f"no part has the federate '{name}'{did_you_mean(name, names)}"
        raise InputError(f"{what}; there is {', '.join(names)}", str(path))
    serve(coupling, rig.tick_model.step, name, broker, watch)


def _coupling_of(rig: Rig, path: str | Path) -> Coupling:
    coupling = rig.tick_model.coupling
    if coupling is None or not coupling.federates:
        raise InputError("no part of the rig has a federate; give parts the key `federate`", str(path))
    if coupling.first_step is not None:
        what = "federates meet once per tick; take out `couplings.step` and `couplings.step_control`"
        raise InputError(what, str(path))
    return coupling


if __name__ == "__main__":  # the process of a federate; it ends with the run, also where that is killed
    import threading

    from cosim.simulation.fmi.fmu_process import end_with

    threading.Thread(target=end_with, args=(int(sys.argv[1]),), daemon=True).start()
    rig, name, broker, *overrides = sys.argv[2:]
    try:
        run_federate(rig, name, broker, overrides)
    except CosimError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
