"""A system of SSP in a rig against fmpy's simulation of the same archive.

fmpy steps all FMUs with the values of the step before, as Jacobi of order 0, in the units of the FMUs; what enters the
system arrives one step later, and all inputs begin with 0. It knows no transformations.
"""

from __future__ import annotations

import numpy as np
import pytest

from cosim import load_rig
from tests.fmi import fmus
from tests.fmi.test_system_structure import NAMES, join
from tests.rig.test_ssp_parts import write

pytestmark = fmus.needs_gcc


def component(name: str, model: str, **connectors: str) -> str:
    inside = "".join(f'<ssd:Connector name="{each}" kind="{kind}"/>' for each, kind in connectors.items())
    kinds = f'source="resources/{model}2.fmu" type="application/x-fmu-sharedlibrary" implementation="CoSimulation"'
    return f'<ssd:Component name="{name}" {kinds}><ssd:Connectors>{inside}</ssd:Connectors></ssd:Component>'


def by_number(start: str, end: str) -> str:
    return join(start, end).replace("<ssd:Connection ", '<ssd:Connection suppressUnitConversion="true" ')


def system(connectors: str, connections: str) -> str:
    elements = component("table", "turntable", rate="input", angle="output")
    elements += component("spring", "spring", speed="input", torque="output", twist="output")
    body = f"{connectors}<ssd:Elements>{elements}</ssd:Elements>"
    head = f'<ssd:SystemStructureDescription {NAMES} name="chain" version="1.0"><ssd:System name="chain">{body}'
    end = f"<ssd:Connections>{connections}</ssd:Connections></ssd:System></ssd:SystemStructureDescription>"
    return head + end


RIG = """
mechanism:
  bodies: [{name: rotor, joint: shaft, axis: [0, 0, 1], mass: 1 kg, inertia: [0.02, 0.02, 0.02]}]
joints: {shaft: {prescribed: {type: sine, amplitude: 30 deg, frequency: 1 Hz}}}
schedule: {step: 10 ms, duration: 1 s}
parts:
  - {name: chain, ssp: chain.ssp, process: false}
couplings: {master: jacobi, order: 0}
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "resources").mkdir()
    for model in ("spring", "turntable"):
        fmus.build(tmp_path / "resources", model, 2)
    (tmp_path / "rig.yaml").write_text(RIG)
    return tmp_path


def test_a_chain_behind_an_input_of_the_system(folder):
    """The position of the shaft is the rate of the table: both begin with 0."""
    from fmpy.ssp.simulation import simulate_ssp

    entry = '<ssd:Connection startConnector="speed" endElement="table" endConnector="rate"/>'
    chain = by_number("table.angle", "spring.speed")
    speed = '<ssd:Connectors><ssd:Connector name="speed" kind="input"/></ssd:Connectors>'
    write(folder, system(speed, entry + chain), "chain.ssp")
    wire = "{output: mechanism.shaft/position, input: chain.speed, factor: 1}"
    run = load_rig(folder / "rig.yaml", [f"couplings.wires=[{wire}]"]).run()
    h, degree = 0.01, np.pi / 180.0

    def entering(t: float) -> float:
        """One step early, in degrees."""
        return 30.0 * np.sin(2.0 * np.pi * (t + h))

    with np.errstate(all="raise"):
        theirs = simulate_ssp(str(folder / "chain.ssp"), stop_time=0.999, step_size=h, input={"speed": entering})
    n = len(theirs["time"])
    for name, unit in (("table/angle", degree), ("spring/twist", degree), ("spring/torque", 1.0)):
        expected = unit * theirs[name.replace("/", ".")]
        np.testing.assert_allclose(run[f"chain/{name}"][1 : n + 1], expected[: len(run.t) - 1], atol=1e-12)
        assert np.ptp(expected) > 0.01
    assert n == 100


def test_a_closed_loop(folder):
    """The twist swings as a cosine. In its first step fmpy has no inputs, so both part by an error of first order in
    the step."""
    from fmpy.ssp.simulation import simulate_ssp
    from fmpy.ssp.ssd import Parameter, ParameterSet

    connections = by_number("table.angle", "spring.speed") + by_number("spring.torque", "table.rate")
    write(folder, system("", connections), "chain.ssp")
    given = ParameterSet()
    given.parameters = [Parameter()]
    given.parameters[0].name, given.parameters[0].value = "spring.twist", 10.0
    gaps = []
    for h in (0.01, 0.005):
        settings = ["parts.chain.params={spring.twist: 10 deg}", f"schedule.step={h}", "schedule.duration=2"]
        run = load_rig(folder / "rig.yaml", settings).run()
        theirs = simulate_ssp(str(folder / "chain.ssp"), stop_time=2.0 - 0.5 * h, step_size=h, parameter_set=given)
        n = min(len(run.t) - 1, len(theirs["time"]))
        ours = run["chain/spring/twist"][1 : n + 1] / np.pi * 180.0
        gaps.append(np.abs(ours - theirs["spring.twist"][:n]).max())
    omega = np.sqrt(20.0 * np.pi / 180.0)
    np.testing.assert_allclose(ours, 10.0 * np.cos(omega * run.t[1 : n + 1]), atol=0.05)
    assert gaps[0] < 0.06 and gaps[0] / gaps[1] == pytest.approx(2.0, rel=0.05)
