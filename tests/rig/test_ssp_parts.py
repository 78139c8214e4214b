"""Systems of SSP as parts of a rig: the numbers of single FMUs, parameters, units, and their mistakes."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from cosim import StoppedRun, load_rig
from cosim.cli.describe import describe
from cosim.rig.parameter_table import table_of
from cosim.rig.rig_files import files_of
from tests.fmi import fmus
from tests.fmi.test_system_structure import NAMES, assert_valid
from tests.kit.given import beside
from tests.kit.refusals import raised, refusal

GIVEN = beside(__file__)

pytestmark = fmus.needs_gcc

SYSTEM = GIVEN["system"].replace("NAMES", NAMES)

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
SINGLE = BODY + GIVEN["single"].replace("OFFSET", repr(5.0 * 0.017453292519943295))


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


@pytest.mark.parametrize("settings", [["couplings.master=jacobi"], ["couplings.order=2"]])
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


def run_with(folder, *settings):
    return load_rig(folder / "rig.yaml", settings).run()


def test_the_shaft_swings_on_the_spring(folder):
    """Stiffness 30 N·m/rad on 0.02 kg·m²: the connector `stiffness` of the system gives it."""
    run = run_with(folder, "couplings.order=2")
    omega = np.sqrt(30.0 / 0.02)
    np.testing.assert_allclose(run["shaft/position"], 3.0 / omega * np.sin(omega * run.t), atol=2e-4)
    np.testing.assert_allclose(run["drive/meter/gauge/angle"], run["shaft/position"], atol=1e-6)
    assert run.rig.engine["part drive/meter/gauge"] == "Python: an FMU"


@pytest.mark.parametrize(
    "setting",
    [
        "parts.drive.params={stiffness: 50}",
        "parts.drive.params={spring.stiffness: 50}",
        "parts.drive.params.spring.stiffness=50",
    ],
)
def test_parameters_of_the_rig_replace_those_of_the_file(folder, setting):
    run = run_with(folder, setting)
    expected = -50.0 * run["drive/spring/twist"]
    np.testing.assert_allclose(run["drive/spring/torque"], expected, atol=1e-12)


def test_a_parameter_with_a_unit_and_a_local_variable(folder):
    """`temperature` is no output; its value is in °C."""
    settings = [
        "parts.drive.params={meter.gauge.temperature: 30 degC}",
        "parts.drive.locals=[meter.gauge.der(angle), spring.der(twist)]",
    ]
    rig = load_rig(folder / "rig.yaml", settings)
    (gauge,) = (part for part in rig.spec.parts if part.name == "drive/meter/gauge")
    assert gauge.parameters["temperature"] == "30 degC" and gauge.outputs[:2] == ("angle", "double")
    run = rig.run()
    assert run.units["drive/meter/gauge/der(angle)"] == "rad/s"
    np.testing.assert_allclose(run["drive/meter/gauge/der(angle)"][1:], run["shaft/velocity"][1:], atol=0.05)


@pytest.mark.parametrize("name", ["drive/spring.stiffness", "drive/meter/gauge.temperature"])
def test_a_parameter_of_a_system_is_in_the_table_with_its_override(folder, name):
    settings = ["parts.drive.params={meter.gauge.temperature: 30 degC}"]
    rig = load_rig(folder / "rig.yaml", settings)
    assert table_of(rig).unset()[name]["value"] == 30.0
    override = table_of(rig).fixed[name].key
    assert f"'{override}=…'" in refusal(rig.set, name, 31.0)
    assert table_of(load_rig(folder / "rig.yaml", [f"{override}=31"])).fixed[name].given == 31.0


def test_a_connector_has_the_transformation_of_its_connection(folder):
    """`twisted` is 90° less the twist; a wire of the rig scales it once more, and a part records what it gets."""
    text = RIG.replace("process: false}", "process: false}\n  - {name: probe, fmu: resources/passing2.fmu}")
    wire = "  wires: [{output: drive.twisted, input: probe.real_in, factor: 10, offset: -3}]\n"
    fmus.build(folder / "resources", "passing", 2)
    (folder / "probe.yaml").write_text(text + wire)
    run = load_rig(folder / "probe.yaml", ["couplings.order=0"]).run()
    expected = 10.0 * (np.pi / 2 - run["drive/spring/twist"]) - 3.0
    np.testing.assert_allclose(run["probe/real_out"], expected, atol=1e-12)


def test_a_delayed_connection_in_a_system(folder):
    """`echo.1` integrates a rate in deg/s that is twice the angle of `gauge` in degrees, plus 5, a tick ago."""
    run = run_with(folder, "parts.drive.initial={meter.echo.1.rate: 0.7}", "couplings.order=0")
    rate = 2.0 * run["drive/meter/gauge/angle"] + np.radians(5.0)
    np.testing.assert_allclose(np.diff(run["drive/meter/echo_1/angle"]), 1e-3 * rate[:-1], atol=1e-12)
    np.testing.assert_allclose(run["drive/meter/echo_1/double"][0], 2 * 0.7 * 180 / np.pi * 201.168, rtol=1e-9)


def test_an_ssd_file_and_processes(folder):
    (folder / "drive.ssd").write_text(SYSTEM)
    short = "schedule.duration=20 ms"
    expected = run_with(folder, short)
    for setting in ("parts.drive.ssp=drive.ssd", "parts.drive.process=true"):
        np.testing.assert_array_equal(run_with(folder, short, setting).values, expected.values)


def test_the_archive_is_a_file_of_the_rig(folder):
    assert set(files_of(load_rig(folder / "rig.yaml")).contents) == {"drive.ssp", "rig.yaml", "rig.as_run.yaml"}


def test_check_shows_the_parts(folder, capsys):
    describe(load_rig(folder / "rig.yaml"))
    text = capsys.readouterr().out
    assert "part drive/meter/echo_1: turntable2.fmu of drive.ssp, an FMU in the process of the run" in text
    assert "wire drive/meter/gauge.angle -> drive/meter/echo_1.rate, times 2, plus 0.0872665\n" in text
    assert "bond drive/spring.torque -> mechanism.shaft/effort, mechanism.shaft/velocity -> drive/spring.speed" in text
    assert "wire mechanism.shaft/velocity -> drive/meter/gauge.rate\n" in text


WRONG_ENDS = GIVEN["wrong_ends"].strip()


@pytest.mark.parametrize("setting", WRONG_ENDS.splitlines())
def test_mistakes_in_the_rig_have_its_line(folder, said, setting):
    lines = refusal(load_rig, folder / "rig.yaml", [setting]).splitlines()
    assert all(line.startswith((f"--set {setting}: ", f"{folder}/rig.yaml:12 couplings.bonds[0]: ")) for line in lines)
    said(line.replace(str(folder), "") for line in lines)


# what of the system is replaced, and the line of the mistake
WRONG_SYSTEMS = GIVEN["wrong_systems"]


@pytest.mark.parametrize(("old", "new", "line"), WRONG_SYSTEMS)
def test_mistakes_in_a_system_have_their_file_and_line(folder, said, old, new, line):
    assert SYSTEM.count(old) == 1
    write(folder, SYSTEM.replace(old, new), "wrong.ssp")
    words = refusal(load_rig, folder / "rig.yaml", ["parts.drive.ssp=wrong.ssp"])
    assert words.startswith(f"--set parts.drive.ssp=wrong.ssp: {folder}/wrong.ssp/SystemStructure.ssd:{line}: ")
    said(words.replace(str(folder), ""))


LOOP = GIVEN["loop"].replace("NAMES", NAMES)


def test_a_loop_in_a_system_is_named_and_broken_by_initial(folder, said):
    """x ← x/2 + 1 once per tick, from 6."""
    fmus.build(folder / "resources", "passing", 2)
    write(folder, LOOP, "loop.ssp")
    (folder / "loop.yaml").write_text(BODY + "parts:\n  - {name: loop, ssp: loop.ssp, process: false}\n")
    said(refusal(load_rig, folder / "loop.yaml").replace(str(folder), ""))
    run = load_rig(folder / "loop.yaml", ["parts.loop.initial={one.real_in: 6}"]).run()
    expected = [6.0]
    for _ in run.t[1:]:
        expected.append(0.5 * expected[-1] + 1.0)
    np.testing.assert_allclose(run["loop/two/real_out"], expected, rtol=1e-14)


FAULTY = """<ssd:SystemStructureDescription NAMES name="bad" version="1.0">
<ssd:System name="bad"><ssd:Elements>
<ssd:Component name="part" source="resources/faulty2.fmu"/>
</ssd:Elements></ssd:System>
</ssd:SystemStructureDescription>""".replace("NAMES", NAMES)


def test_an_fmu_of_a_system_that_crashes_is_named_by_its_archive(folder):
    fmus.build(folder / "resources", "faulty", 2)
    write(folder, FAULTY, "bad.ssp")
    (folder / "bad.yaml").write_text(
        BODY + "parts:\n  - {name: bad, ssp: bad.ssp, params: {part.when: 0.01, part.fault: 5}}\n"
    )
    stopped = raised(StoppedRun, load_rig(folder / "bad.yaml").run)
    assert f"{folder}/bad.ssp/resources/faulty2.fmu bad/part: crashed (SIGSEGV)" in str(stopped)
    assert len(stopped.run.t) == 9


@pytest.mark.parametrize("text", [SYSTEM, LOOP, FAULTY])
def test_the_systems_of_these_tests_follow_the_standard(text):
    assert_valid("Description", text)
