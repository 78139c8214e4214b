"""The page on bond graphs: its rig has the equations that the page shows."""

from pathlib import Path

import pytest
import yaml

from cosim import Rig
from tests.docs.documents import PAGES, blocks

PAGE = PAGES["howto/bond-graphs.md"]


def test_the_equations_on_the_page_are_those_of_its_rig(command):
    (rig,), (*_, equations) = blocks(PAGE, "yaml"), blocks(PAGE, "text")
    Path("elastic_drive.yaml").write_text(rig)
    lines = [line.split() for line in blocks(PAGE, "sh")[0].splitlines()]
    out = command.prints(*lines[0][1:])
    assert out.endswith(equations)


def test_the_commands_on_the_page_run(command):
    Path("elastic_drive.yaml").write_text(blocks(PAGE, "yaml")[0])
    for block in blocks(PAGE, "sh"):
        for line in block.splitlines():
            code, out, err = command(*line.split()[1:])
            assert (code, err) == (0, []) and out


def moved_by(graph, kind):
    body = {"name": "load", "joint": "load", "type": kind, "axis": [0, 0, 1], "mass": 1, "inertia": [1, 1, 1]}
    rig = {
        "mechanism": {"gravity": [0, 0, 0], "bodies": [body]},
        "joints": {"load": {"actuator": {"type": "bond_graph", "graph": graph}}},
        "schedule": {"step": "1 ms", "duration": "0.1 s", "integrator": "rodas4", "substeps": "auto"},
    }
    return Rig.from_dict(rig).run()


def test_the_storage_field_on_the_page_pulls_its_core():
    graph = yaml.safe_load(blocks(PAGE, "text")[0])
    graph["junctions"] = {"mesh": 1, "rod": 1}
    graph["elements"]["supply"] = {"type": "Se", "domain": "electrical", "effort": 5}
    graph["elements"]["resistance"] = {"type": "R", "domain": "electrical", "resistance": 2}
    graph["bonds"] += ["supply -> mesh -> resistance", "rod -> joint"]
    run = moved_by(graph, "prismatic")
    assert run["load/position"][-1] < 0.0
    assert abs(run.summary["energy"]["residual_relative"]) < 1e-6


@pytest.mark.parametrize("name", ["stage", "lossy", "table", "worm"])
def test_the_stages_on_the_page_move_a_load(name):
    components = yaml.safe_load(blocks(PAGE, "text")[1])["components"]
    graph = {
        "junctions": {"rotor": 1},
        "elements": {
            "motor": {"type": "Se", "domain": "rotational", "effort": 3},
            "inertia": {"type": "I", "domain": "rotational", "inertia": 0.01},
        },
        "components": {"stage": components[name]},
        "bonds": ["motor -> rotor -> stage.input", "stage.output -> joint"],
    }
    if "stiffness" in components[name]:
        graph["bonds"].append("rotor -> inertia")
    else:
        del graph["elements"]["inertia"]
    assert moved_by(graph, "revolute")["load/position"][-1] > 0.0
