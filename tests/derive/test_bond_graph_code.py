"""Bond graphs as code in C, Python and MATLAB: the rates and outputs that the simulation has."""

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from cosim import Rig
from cosim.apps.derive.bond_graph_code import code_model
from cosim.apps.derive.bond_graph_equations import of_outputs, outputs_of
from cosim.apps.derive.bond_graph_report import derive_bond_graph, graph_actuators
from cosim.apps.derive.equations.files import code_lines
from cosim.core.errors import InputError
from cosim.plugins.actuators._graph_actuator import GraphActuator
from tests.derive.equations.derivations import GCC, STRICT
from tests.kit.refusals import raised
from tests.kit.samples import FOLDER

OCTAVE = shutil.which("octave-cli") or ""
needs_octave = pytest.mark.skipif(not OCTAVE, reason="no octave-cli: MATLAB's files are not run")
DRIVES = ["dc_start", "two_stage_gear", "hydraulic_full", "servo_axis", "lossy_gear", "electromechanical"]
Values = tuple[float, np.ndarray, np.ndarray]


def actuator_of(rig: str) -> GraphActuator:
    return next(iter(graph_actuators(FOLDER / "drives" / f"{rig}.yaml").values()))


def in_simulation(actuator: GraphActuator, given: Values) -> dict[str, list[float]]:
    """What the assembled graph has."""
    t, x, u = given
    assembly = actuator.assembly
    kept = [state.name for state in assembly.states if not state.account]
    states = dict(zip(kept, x, strict=True))
    states |= {state.name: 0.0 for state in assembly.states if state.account}
    inputs = dict(zip([*assembly.inputs, *assembly.rates_of_inputs], u, strict=True))
    rates, known = assembly.flow(t, states, inputs)
    outputs = of_outputs(outputs_of(actuator), known)
    return {"rates": [float(rates[name]) for name in kept], "outputs": [float(value) for value in outputs.values()]}


def random_values(actuator: GraphActuator) -> Values:
    assembly, random = actuator.assembly, np.random.default_rng(5)
    x = [
        float(s.initial) * random.uniform(0.9, 1.1) + random.uniform(0.0, 1e-3)
        for s in assembly.states
        if not s.account
    ]
    return 0.4, np.array(x), random.uniform(0.1, 0.5, len(assembly.inputs) + len(assembly.rates_of_inputs))


def by_c(actuator: GraphActuator, given: Values, folder: Path) -> dict[str, list[float]]:
    model = code_model("drive", actuator)
    source, library = folder / "drive.c", folder / "drive.so"
    source.write_text("\n".join(code_lines(model, "c", source)) + "\n")
    subprocess.run([GCC, *STRICT, "-shared", "-fPIC", "-o", library, source, "-lm"], check=True)
    code, found = ctypes.CDLL(str(library)), {}
    values = np.array([p.value for p in model.parameters])
    for function in model.functions:
        out = np.zeros(function.shape[0])
        arrays = [*given[1:], *([values] if model.parameters else []), out]
        pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in arrays]
        code[f"drive_{function.name}"](ctypes.c_double(given[0]), *pointers)
        found[function.name] = out.tolist()
    return found


def by_python(actuator: GraphActuator, given: Values, folder: Path) -> dict[str, list[float]]:
    code: dict[str, Any] = {}
    exec("\n".join(code_lines(code_model("drive", actuator), "python", None)), code)
    t, x, u = given[0], given[1].tolist(), given[2].tolist()
    return {name: code[name](t, x, u) for name in ("rates", "outputs") if name in code}


def by_matlab(actuator: GraphActuator, given: Values, folder: Path) -> dict[str, list[float]]:
    model, file = code_model("drive", actuator), folder / "drive.m"
    file.write_text("\n".join(code_lines(model, "matlab", file)) + "\n")
    x, u = (f"[{'; '.join(map(repr, array.tolist()))}]" for array in given[1:])
    names = [function.name for function in model.functions]
    lines = ["m = drive();", *(f"printf('%.17g ', m.{n}({given[0]}, {x}, {u})); printf('\\n');" for n in names)]
    (folder / "run.m").write_text("\n".join(lines) + "\n")
    run = subprocess.run([OCTAVE, "--norc", "run.m"], cwd=folder, capture_output=True, text=True, check=True)
    return {n: [*map(float, line.split())] for n, line in zip(names, run.stdout.splitlines(), strict=True)}


@pytest.mark.parametrize("rig", DRIVES)
@pytest.mark.parametrize("run", [by_c, by_python, pytest.param(by_matlab, marks=needs_octave)])
def test_code_has_the_rates_and_outputs_of_the_simulation(run: Callable[..., Any], rig: str, tmp_path: Path) -> None:
    actuator = actuator_of(rig)
    given = random_values(actuator)
    found = run(actuator, given, tmp_path)
    for name, expected in in_simulation(actuator, given).items():
        assert found.get(name, []) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_parameters_of_code_can_be_changed(rig_of: Callable[..., Rig]) -> None:
    """A file in Python with another resistance is the drive of a rig with this resistance."""
    code: dict[str, Any] = {}
    exec("\n".join(code_lines(code_model("drive", actuator_of("dc_start")), "python", None)), code)
    parameters = list(code["PARAMETERS"])
    parameters[code["INDEX"]["machine_resistance"]] = 0.2
    text = (FOLDER / "drives" / "dc_start.yaml").read_text().replace("resistance: 0.05 ohm", "resistance: 0.2 ohm")
    run = rig_of(text).run(duration=1.2)

    def rates(t: float, y: np.ndarray) -> list[float]:
        """The current, and the speed of the load of 0.15 kg m² with the rotor."""
        u = [0.0, 0.0, y[1], 0.0]
        effort = code["outputs"](t, y[:1], u, parameters)[0]
        return [*code["rates"](t, y[:1], u, parameters), effort / (0.15 + 0.15)]

    found = solve_ivp(rates, (0.0, run.t[-1]), [0.0, 0.0], rtol=1e-9, atol=1e-9, max_step=1e-3)
    assert run["shaft/current"][-1] == pytest.approx(found.y[0, -1], rel=1e-5)
    assert run["shaft/velocity"][-1] == pytest.approx(found.y[1, -1], rel=1e-5)


TWO = """
name: two
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {name: a, joint: first, axis: [0, 0, 1], mass: 1 kg, inertia: [1, 1, 1]}
    - {name: b, parent: base, joint: second, axis: [0, 0, 1], mass: 1 kg, inertia: [1, 1, 1]}
bond_graphs:
  coupling:
    joints: {left: first, right: second}
    graph:
      constants: {k: 5 N*m/rad}
      junctions: {twist: 0}
      elements: {spring: {type: C, domain: rotational, law: k * displacement + 2 * displacement^3}}
      bonds: [left -> twist -> spring, twist -> right]
schedule: {step: 1 ms, duration: 0.1 s}
"""


def test_graphs_of_several_joints_are_derived_too(command: Any, said: Any) -> None:
    Path("two.yaml").write_text(TWO)
    said(command.prints("derive", "two.yaml", "--bondgraph", "--joint", "coupling"))


def test_code_is_written_to_a_file_of_its_language(command: Any, said: Any) -> None:
    Path("two.yaml").write_text(TWO)
    command.prints("derive", "two.yaml", "graph.c", "--bondgraph", "--to", "c")
    assert "void coupling_rates(double t, const double x[1]" in Path("graph.c").read_text()
    said(str(raised(InputError, derive_bond_graph, Path("two.yaml"), Path("graph.c"), None, "loop-free", "python")))


def test_code_is_of_one_graph(said: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    again = TWO.replace("  coupling:", "  other:").partition("bond_graphs:\n")[2].partition("schedule:")[0]
    body = "    - {name: NAME, parent: base, joint: NAMENAME, axis: [0, 0, 1], mass: 1 kg, inertia: [1, 1, 1]}\n"
    bodies = "".join(body.replace("NAME", name) for name in "cd")
    again = again.replace("first", "cc").replace("second", "dd")
    text = TWO.replace("bond_graphs:\n", bodies + "bond_graphs:\n" + again)
    Path("four.yaml").write_text(text)
    said(str(raised(InputError, derive_bond_graph, Path("four.yaml"), None, None, "loop-free", "c")))
