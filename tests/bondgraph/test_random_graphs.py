"""Random graphs on joints against one linear system of all their bonds: motion, every effort and flow, and energy."""

from typing import Any

import numpy as np
import pytest

from cosim import Rig, Run
from cosim.core.errors import InputErrors
from tests.bondgraph.random_graphs import LinearSystem, RandomGraph, random_graph

BATCH, BATCHES = 20, 26  # 200 of the 520 graphs have a solution
SLOW = 5.0  # 1/s; below, steps of 1 ms of rk4 are exact enough
STIFF = {"integrator": "rodas4", "substeps": "auto", "tolerance": 1e-11}


def rig_of(graph: RandomGraph, **schedule: Any) -> Rig:
    bodies = []
    for joint, domain in graph.joints.items():
        body = {"name": f"body_{joint}", "parent": "base", "joint": joint, "axis": [0, 0, 1]}
        if domain == "rotational":
            bodies.append(body | {"mass": 1, "inertia": [1, 1, graph.inertias[joint]]})
        else:
            bodies.append(body | {"type": "prismatic", "mass": graph.inertias[joint], "inertia": [1, 1, 1]})
    drive = {"joints": {joint: joint for joint in graph.joints}, "graph": graph.section, "signals": graph.recorded}
    return Rig.from_dict(
        {
            "mechanism": {"gravity": [0, 0, 0], "bodies": bodies},
            "joints": {joint: {"initial": {"velocity": v}} for joint, v in graph.velocities.items()},
            "bond_graphs": {"drive": drive},
            "schedule": {"step": "1 ms", "duration": "1 s", "integrator": "rk4", **schedule},
        }
    )


def recorded(run: Run, graph: RandomGraph, system: LinearSystem, k: int) -> dict[int, float]:
    """Unknown of the system, by its place -> what the run has recorded of it at tick k."""
    found = {}
    for joint in graph.joints:
        for what, name in (("q", "position"), ("v", "velocity")):
            found[system.column[what, joint]] = run[f"{joint}/{name}"][k]
    for name, signal in graph.recorded.items():
        element, side = signal.split(".")
        found[system.column[side[0], system.bond_of(element)]] = run[f"drive/{name}"][k]
    for name, (_, frequency, phase) in graph.sources.items():
        angle = frequency * run.t[k] + phase
        found |= {system.column["sin", name]: np.sin(angle), system.column["cos", name]: np.cos(angle)}
    return found


def check(graph: RandomGraph, run: Run, system: LinearSystem) -> None:
    start, end = (recorded(run, graph, system, k) for k in (0, -1))
    places = list(start)
    shown = system.subspace[places]
    z, _, rank, _ = np.linalg.lstsq(shown, np.array([*start.values()]), rcond=None)
    assert rank == system.subspace.shape[1]
    expected = system.after(run.t[-1], system.subspace @ z)
    scale = max(np.abs([*start.values()]).max(), np.abs(expected[places]).max())
    # it begins with what the equations allow, and in as many storages as they leave free with what it was given
    np.testing.assert_allclose(shown @ z, [*start.values()], rtol=0.0, atol=1e-10 * scale)
    assert kept(graph, run) >= rank - 2 * len(graph.joints) - 2 * len(graph.sources)
    np.testing.assert_allclose([*end.values()], expected[places], rtol=0.0, atol=1e-8 * scale)
    energy = run.summary["energy"]
    assert energy is not None and abs(energy["residual_relative"]) < 1e-9


def kept(graph: RandomGraph, run: Run) -> int:
    """Storages that begin as they were given."""
    found = 0
    for name, kind in graph.storages.items():
        if "." in name:
            found += 1  # a field has its states always
            continue
        wanted = graph.elements[name]["initial"] * (1.0 if kind == "I" else graph.values[name])
        side = "flow" if kind == "I" else "effort"
        found += bool(np.isclose(run[f"drive/{name}_{side}"][0], wanted, rtol=1e-12, atol=1e-12))
    return found


@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_graphs_move_as_the_linear_system_of_their_bonds(batch: int) -> None:
    """Graphs that are refused have no single solution by that system either."""
    moved = 0
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        graph = random_graph(seed)
        given, system = LinearSystem(graph, given=True), LinearSystem(graph)
        schedule = STIFF if given.is_regular() and system.fastest > SLOW else {}
        try:
            rig = rig_of(graph, **schedule)
        except InputErrors as error:
            assert given.cannot_be(), f"{seed}: {error}"
            continue
        assert given.is_regular(), seed
        check(graph, rig.run(), system)
        moved += 1
    assert moved >= 2
