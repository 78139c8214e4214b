"""Systems of SSP as parts of a rig: the numbers of single FMUs, parameters, units, and their mistakes."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from cosim import InputErrors, StoppedRun, load_rig
from tests.fmi import fmus
from tests.fmi.test_system_structure import NAMES

pytestmark = fmus.needs_gcc

SYSTEM = """<ssd:SystemStructureDescription NAMES name="drive" version="1.0">
<ssd:System name="drive">
<ssd:Connectors>
<ssd:Connector name="speed" kind="input"><ssc:Real unit="rad/s"/></ssd:Connector>
<ssd:Connector name="torque" kind="output"/>
<ssd:Connector name="spare" kind="output"/>
<ssd:Connector name="stiffness" kind="parameter"/>
<ssd:Connector name="twisted" kind="output"><ssc:Real unit="deg"/></ssd:Connector>
</ssd:Connectors>
<ssd:ParameterBindings><ssd:ParameterBinding><ssd:ParameterValues><ssv:ParameterSet name="p" version="1.0">
<ssv:Parameters>
<ssv:Parameter name="stiffness"><ssv:Real value="30"/></ssv:Parameter>
<ssv:Parameter name="meter.gauge.temperature"><ssv:Real value="40"/></ssv:Parameter>
</ssv:Parameters></ssv:ParameterSet></ssd:ParameterValues></ssd:ParameterBinding></ssd:ParameterBindings>
<ssd:Elements>
<ssd:Component name="spring" source="resources/spring2.fmu" implementation="CoSimulation"/>
<ssd:System name="meter">
<ssd:Connectors><ssd:Connector name="in" kind="input"/></ssd:Connectors>
<ssd:Elements>
<ssd:Component name="gauge" source="resources/turntable2.fmu" implementation="ModelExchange"/>
<ssd:Component name="echo.1" source="resources/turntable2.fmu" implementation="CoSimulation"/>
</ssd:Elements>
<ssd:Connections>
<ssd:Connection startConnector="in" endElement="gauge" endConnector="rate"/>
<ssd:Connection startElement="gauge" startConnector="angle" endElement="echo.1" endConnector="rate">
<ssc:LinearTransformation factor="2" offset="5"/></ssd:Connection>
</ssd:Connections>
</ssd:System>
</ssd:Elements>
<ssd:Connections>
<ssd:Connection startConnector="speed" endElement="spring" endConnector="speed"/>
<ssd:Connection startConnector="speed" endElement="meter" endConnector="in"/>
<ssd:Connection startElement="spring" startConnector="torque" endConnector="torque"/>
<ssd:Connection startConnector="stiffness" endElement="spring" endConnector="stiffness"/>
<ssd:Connection startElement="spring" startConnector="twist" endConnector="twisted">
<ssc:LinearTransformation factor="-1" offset="90"/></ssd:Connection>
</ssd:Connections>
</ssd:System>
<ssd:Units>
<ssd:Unit name="rad/s"><ssc:BaseUnit rad="1" s="-1"/></ssd:Unit>
<ssd:Unit name="deg"><ssc:BaseUnit rad="1" factor="0.017453292519943295"/></ssd:Unit>
</ssd:Units>
</ssd:SystemStructureDescription>""".replace("NAMES", NAMES)

BODY = """
mechanism:
  gravity: [0, 0, 0]
  bodies: [{name: rotor, joint: shaft, axis: [0, 0, 1], mass: 1 kg, inertia: [0.02, 0.02, 0.02]}]
joints: {shaft: {initial: {velocity: 3 rad/s}}}
schedule: {step: 1 ms, duration: 0.1 s}
"""
RIG = (
    BODY
    + """
parts:
  - {name: drive, ssp: drive.ssp, process: false}
couplings:
  bonds:
    - {effort: [drive.torque, mechanism.shaft/effort], flow: [mechanism.shaft/velocity, drive.speed]}
"""
)
SINGLE = (
    BODY
    + """
parts:
  - {name: spring, fmu: resources/spring2.fmu, interface: co_simulation, params: {stiffness: 30}, process: false}
  - {name: gauge, fmu: resources/turntable2.fmu, interface: model_exchange, params: {temperature: 40}, process: false}
  - {name: echo, fmu: resources/turntable2.fmu, interface: co_simulation, process: false}
couplings:
  bonds:
    - {effort: [spring.torque, mechanism.shaft/effort], flow: [mechanism.shaft/velocity, spring.speed]}
  wires:
    - {output: mechanism.shaft/velocity, input: gauge.rate}
    - {output: gauge.angle, input: echo.rate, factor: 2, offset: OFFSET}
""".replace("OFFSET", repr(5.0 * 0.017453292519943295))
)


def write(folder: Path, system: str = SYSTEM, name: str = "drive.ssp") -> None:
    with zipfile.ZipFile(folder / name, "w") as archive:
        archive.writestr("SystemStructure.ssd", system)
        for file in (folder / "resources").iterdir():
            archive.write(file, f"resources/{file.name}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("systems")
    (folder / "resources").mkdir()
    for model in ("spring", "turntable"):
        fmus.build(folder / "resources", model, 2)
    write(folder)
    (folder / "rig.yaml").write_text(RIG)
    (folder / "single.yaml").write_text(SINGLE)
    return folder


@pytest.mark.parametrize("settings", [["couplings.master=jacobi"], ["couplings.order=2"], ["couplings.order=0"]])
def test_a_system_equals_its_fmus_as_single_parts_to_the_bit(folder, settings):
    system, single = (load_rig(folder / name, settings).run() for name in ("rig.yaml", "single.yaml"))
    names = {"drive/spring": "spring", "drive/meter/gauge": "gauge", "drive/meter/echo_1": "echo"}
    for name, alone in names.items():
        for signal in ("twist", "torque") if alone == "spring" else ("angle", "double"):
            np.testing.assert_array_equal(system[f"{name}/{signal}"], single[f"{alone}/{signal}"])
            assert system.units[f"{name}/{signal}"] == single.units[f"{alone}/{signal}"]
    np.testing.assert_array_equal(system["shaft/position"], single["shaft/position"])
    np.testing.assert_array_equal(
        system["drive/spring-mechanism/residual_energy"], single["spring-mechanism/residual_energy"]
    )
    assert np.ptp(system["drive/meter/echo_1/angle"]) > 0.01
