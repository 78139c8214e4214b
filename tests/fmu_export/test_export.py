"""The command, the model description and the units in it, and rigs that have no FMU."""

from __future__ import annotations

import json
import os
import re
import sys
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import fmpy
import numpy as np
import pytest
import yaml

from cosim import load_rig
from cosim.apps.deploy.fmu_export import fmu_file, linking
from cosim.apps.deploy.fmu_export.fmu_file import fmu_of, fmu_of_part
from cosim.apps.deploy.fmu_export.model_description import UnitOutline
from cosim.core.errors import CosimError
from cosim.core.units import UNITS, si_exponents
from tests.kit.command import RIG
from tests.kit.flywheel import flywheel
from tests.kit.given import beside
from tests.kit.refusals import raised
from tests.kit.rigs import rig_in
from tests.kit.samples import FOLDER

GIVEN = beside(__file__)

WHEEL = flywheel()
ALIKE = WHEEL.replace("wheel_speed", "speed")


@pytest.mark.parametrize("version", ["2", "3"])
def test_the_command_writes_the_file(command, version):
    out = command.prints("export", "fmu", "rig.yaml", "--fmi", version, "--set", "controllers.hold.kp=40")
    assert out.startswith("wrote    rig.fmu: ") and out.endswith(f" kB, FMI {version}.0, steps of 0.001 s\n")
    with zipfile.ZipFile("rig.fmu") as archive:
        root = ElementTree.fromstring(archive.read("modelDescription.xml"))
        folder = {"2": "linux64", "3": "x86_64-linux"}[version]
        names = ("modelDescription.xml", f"binaries/{folder}/swing.so", "documentation/index.html")
        assert archive.namelist() == [*names, "documentation/licenses/license.txt", "resources/"]
    assert root.attrib["fmiVersion"] == f"{version}.0"
    experiment = root.find("DefaultExperiment")
    assert experiment is not None and float(experiment.attrib["stopTime"]) == 0.4
    (kp,) = (item for item in root.iter() if item.get("name") == "hold.kp/hinge")
    numbers = kp if version == "3" else kp[0]
    assert kp.attrib["causality"] == "parameter" and kp.attrib["variability"] == "tunable"
    assert (numbers.attrib["start"], numbers.attrib["min"], numbers.attrib["unit"]) == ("40.0", "0.0", "N*m/rad")


def test_an_fmu_is_a_target_of_code(command):
    """In a folder that is made for it, or as the file that is named."""
    words = ("rig.yaml", "--fmi", "3", "--input", "hinge/external_effort")
    command.prints("export", "fmu", *words, "-o", "a.fmu")
    out = command.prints("export", "code", *words, "--target", "fmu", "-o", "new/folder")
    assert out.startswith("wrote    new/folder/rig.fmu: ")
    assert Path("new/folder/rig.fmu").read_bytes() == Path("a.fmu").read_bytes()


def test_an_fmu_is_the_same_bytes_again(rig_of):
    assert fmu_of(rig_of(RIG), 2) == fmu_of(rig_of(RIG), 2)


def test_base_units_of_every_unit_agree_with_its_definition():
    """Products of units have the sums of their exponents: values of the SI brochure."""
    assert si_exponents("N*m*s/rad") == {"kg": 1, "m": 2, "s": -1, "rad": -1}
    assert si_exponents("m^3/s/Pa") == {"m": 4, "s": 1, "kg": -1}
    assert si_exponents("N*m/A") == si_exponents("V*s") | {"A": -1} == {"kg": 1, "m": 2, "s": -2, "A": -1}
    assert si_exponents("J/K") == {"kg": 1, "m": 2, "s": -2, "K": -1}
    assert si_exponents("rpm") == {"rad": 1, "s": -1}
    assert si_exponents("%") == {}
    assert si_exponents("degC") == {"K": 1}
    unknown = [unit for unit in UNITS if si_exponents(unit) is None]
    assert {UNITS[unit][0] for unit in unknown} == {"B", "bit/s"}


def refusal(call, *arguments):
    return raised(CosimError, call, *arguments)


BESIDES = {
    "an emergency stop": f"{RIG}guard: {{estop: {{key: space}}}}\n",
    "a controller in Python": re.sub("type: pid.*}}", "type: push.py}", RIG),
}


@pytest.mark.parametrize("what", BESIDES)
def test_rigs_that_have_none(rig_of, said, what):
    rig = rig_of(BESIDES[what], push="effort = np.array([float(q[0])])")
    said(refusal(fmu_of, rig, 2))


COUPLED = GIVEN["coupled"]


def coupled(folder, part, *overrides):
    return rig_in(folder, COUPLED, *overrides, wheel=part)


def test_parts_that_are_no_machine_code_have_none(tmp_path, said):
    rig = coupled(tmp_path, flywheel('float(x["twist"])'))
    (tmp_path / "wheel.fmu").write_bytes(fmu_of_part(coupled(tmp_path, WHEEL), "wheel", 2))
    block = "type: wheel.py, params: {inertia: 0.05, stiffness: 20}"
    changed = rig_in(tmp_path, COUPLED.replace(block, "fmu: wheel.fmu, process: false"))
    for each in (rig, changed):
        what = refusal(fmu_of, each, 2)
        assert str(what) == str(refusal(fmu_of_part, each, "wheel", 2))
        said(what)


def test_interpreted_rigs_and_their_parts_have_none(tmp_path, said):
    rig = rig_in(tmp_path, COUPLED, interpret=True, wheel=WHEEL)
    what = refusal(fmu_of_part, rig, "wheel", 2)
    assert str(what) == str(refusal(fmu_of, rig, 2))
    said(what)


def test_two_signals_of_a_part_with_the_same_name(tmp_path, said):
    said(refusal(fmu_of_part, coupled(tmp_path, ALIKE), "wheel", 2))


@pytest.mark.parametrize("version", ["2", "3"])
def test_the_command_writes_a_part(command, version):
    Path("wheel.py").write_text(WHEEL)
    Path("shaft.yaml").write_text(COUPLED)
    out = command.prints(
        "export", "fmu", "shaft.yaml", "--part", "wheel", "--fmi", version, "--set", "parts.wheel.step=0.1 ms"
    )
    assert out.startswith("wrote    wheel.fmu: ") and out.endswith(f" kB, FMI {version}.0, steps of any length\n")
    with zipfile.ZipFile("wheel.fmu") as archive:
        assert ElementTree.fromstring(archive.read("modelDescription.xml")).attrib["modelName"] == "wheel"
        page = archive.read("documentation/index.html").decode()
    assert "Steps may have any length; its integrator divides them into steps of at most 0.0001 s." in page


WRONG = GIVEN["wrong"]


@pytest.mark.parametrize("words", WRONG)
def test_wrong_words(command, said, words):
    Path("wheel.py").write_text(WHEEL)
    Path("shaft.yaml").write_text(COUPLED)
    Path("rigs").symlink_to(FOLDER)
    said(command.refuses("export", "fmu", *words.split()))


def test_any_other_part_in_python_has_none(rig_of, said, monkeypatch):
    rig = rig_of(RIG)
    monkeypatch.setattr(type(rig), "native", False)
    said(refusal(fmu_of, rig, 2))


def test_without_a_compiler_the_fix_is_named(command, said, monkeypatch):
    monkeypatch.setattr(linking, "find_spec", lambda name: None)
    monkeypatch.setattr(linking.shutil, "which", lambda name: None)
    said(command.refuses("export", "fmu", "rig.yaml"))


def test_another_machine_is_refused(command, said, monkeypatch):
    monkeypatch.setattr(linking.platform, "machine", lambda: "riscv64")
    said(command.refuses("export", "fmu", "rig.yaml"))


def test_a_failing_compiler_is_reported_in_one_line(rig_of, said, monkeypatch):
    monkeypatch.setattr(fmu_file, "compiler_of", lambda platform: ["false"])
    said(refusal(fmu_of, rig_of(RIG), 2))


def test_both_compilers_give_an_fmu(rig_of, monkeypatch, tmp_path):
    """The system's and ziglang's, with the same results."""
    rig, found = rig_of(RIG), []
    for k, compiler in enumerate((["cc"], linking.compiler_of(linking.this_platform()))):
        monkeypatch.setattr(fmu_file, "compiler_of", lambda platform, compiler=compiler: compiler)
        (tmp_path / f"{k}.fmu").write_bytes(fmu_of(rig, 2))
        found.append(fmpy.simulate_fmu(str(tmp_path / f"{k}.fmu"), stop_time=0.4, step_size=1e-3).tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize(("name", "identifier"), [("7 axes", "_7_axes"), ("crane", "crane"), ("à-b", "__b")])
def test_names_of_binaries_are_identifiers(name, identifier):
    assert UnitOutline(name, "", 1e-3, 1.0, "", None).identifier == identifier


def test_the_part_on_the_page_is_used_in_another_rig(command, tmp_path):
    """With the block in its place the motion is the same to rounding."""
    page = (FOLDER.parent / "docs/howto/export-fmu.md").read_text()
    (words,) = re.findall(r"^cosim export fmu (\S+) --part hoist$", page, re.MULTILINE)
    (text,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert command("export", "fmu", FOLDER.parent / words, "--part", "hoist")[0] == 0
    block = yaml.safe_load((FOLDER.parent / words).read_text())["parts"][0]
    block |= {"name": "load", "type": str(FOLDER / "cosimulation/hoisted_load.py")}
    block["params"] |= {"damping": "400 N*s/m"}
    Path("spool.yaml").write_text(text)
    runs = [load_rig("spool.yaml", overrides).run() for overrides in ([], [f"parts.load={json.dumps(block)}"])]
    assert runs[0]["load/height"][-1] == pytest.approx(0.5, abs=0.02)
    for name in ("spool/position", "load/height", "load/tension"):
        np.testing.assert_allclose(runs[0][name], runs[1][name], rtol=1e-10, atol=1e-10)


def test_the_script_on_the_page_runs(monkeypatch, tmp_path, capsys):
    (script,) = re.findall(r"```python\n(.*?)```", (FOLDER.parent / "docs/howto/export-fmu.md").read_text(), re.DOTALL)
    (tmp_path / "rigs").symlink_to(FOLDER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    exec(script, {})
    gains = {"arm.kd": [250.0, 250.0, 150.0, 30.0, 30.0, 15.0]}
    run = load_rig(FOLDER / "ur5_sim.yaml").run(duration=1.0, parameters=gains)
    assert float(capsys.readouterr().out) == run["elbow_joint/position"][-1]
