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
from cosim.errors import CosimError
from cosim.fmu_export import export, linking, platforms
from cosim.fmu_export.export import fmu_of, fmu_of_part
from cosim.fmu_export.model_description import UnitOutline
from cosim.units import UNITS, si_exponents
from tests.kit.command import RIG
from tests.kit.flywheel import flywheel
from tests.kit.rigs import controller, rig_in
from tests.kit.samples import FOLDER

WHEEL = flywheel()
ALIKE = WHEEL.replace("wheel_speed", "speed")


@pytest.mark.parametrize("version", ["2", "3"])
def test_the_command_writes_the_file(command, version):
    code, out, err = command("fmu", "rig.yaml", "--fmi", version, "--set", "controllers.hold.kp=40")
    assert (code, err) == (0, [])
    assert out.startswith(f"wrote    rig.fmu: FMI {version}.0, ") and out.endswith(" KiB, steps of 0.001 s\n")
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


def test_a_rig_with_real_motors_has_none(command):
    fix = "an FMU holds machine code only: take the drivers out"
    path = FOLDER / "arm_can.yaml"
    assert command.refuses("fmu", path) == [f"{path}:4 drivers: real motors cannot be in an FMU; {fix}"]


def test_a_controller_in_python_has_none(rig_of, tmp_path):
    rig = rig_of(
        RIG.replace("type: pid, kp: 50, ki: 10, kd: 5, trajectory: {type: quintic, goal: 30 deg, duration: 0.5}",
                    "type: push.py"),
        push=controller("effort = np.array([float(q[0])])"),
    )  # fmt: skip
    with pytest.raises(CosimError) as error:
        fmu_of(rig, 2)
    where, _, what = str(error.value).partition(" runs in Python (")
    assert where == f"{tmp_path}/rig.yaml:10 controllers[0]: controller 'hold'"
    assert what.endswith("); an FMU holds machine code only: write it with cosim.ops")


def test_a_rig_with_an_emergency_stop_has_none(rig_of, tmp_path):
    rig = rig_of(f"{RIG}guard: {{estop: {{key: space}}}}\n")
    with pytest.raises(CosimError) as error:
        fmu_of(rig, 2)
    what = "an emergency stop cannot be in an FMU; an FMU holds machine code only: take it out"
    assert str(error.value) == f"{tmp_path}/rig.yaml:12 guard.estop: {what}"


COUPLED = """
name: shaft
mechanism:
  bodies: [{name: rotor, joint: shaft, axis: [0, 0, 1], mass: 1 kg, inertia: [0.02, 0.02, 0.02]}]
parts:
  - {name: wheel, type: wheel.py, params: {inertia: 0.05, stiffness: 20}}
couplings:
  bonds:
    - {effort: [wheel.torque, mechanism.shaft/effort], flow: [mechanism.shaft/velocity, wheel.speed]}
schedule: {step: 1 ms, duration: 0.1 s}
"""


def coupled(folder, part, *overrides):
    return rig_in(folder, COUPLED, *overrides, wheel=part)


@pytest.mark.parametrize("whole", [True, False])
def test_parts_that_are_no_machine_code_have_none(tmp_path, whole):
    place = f"{tmp_path}/rig.yaml:6 parts[0]: part 'wheel'"
    rig = coupled(tmp_path, flywheel('float(x["twist"])'))
    with pytest.raises(CosimError) as error:
        fmu_of(rig, 2) if whole else fmu_of_part(rig, "wheel", 2)
    where, _, what = str(error.value).partition(" runs in Python (")
    assert where == place
    assert what.endswith("); an FMU holds machine code only: write it with cosim.ops")
    (tmp_path / "wheel.fmu").write_bytes(fmu_of_part(coupled(tmp_path, WHEEL), "wheel", 2))
    block = "type: wheel.py, params: {inertia: 0.05, stiffness: 20}"
    changed = rig_in(tmp_path, COUPLED.replace(block, "fmu: wheel.fmu, process: false"))
    with pytest.raises(CosimError) as error:
        fmu_of(changed, 2) if whole else fmu_of_part(changed, "wheel", 2)
    fix = "an FMU holds machine code of this program only: couple the file in the importer"
    assert str(error.value) == f"{place} is an FMU itself; {fix}"


def test_a_part_of_an_interpreted_rig_has_none(tmp_path):
    with pytest.raises(CosimError) as error:
        fmu_of_part(rig_in(tmp_path, COUPLED, interpret=True, wheel=WHEEL), "wheel", 2)
    what = "the rig is interpreted; an FMU holds machine code only: unset COSIM_INTERPRET"
    assert str(error.value) == f"cosim fmu: {what}"


def test_two_signals_of_a_part_with_the_same_name(tmp_path):
    with pytest.raises(CosimError) as error:
        fmu_of_part(coupled(tmp_path, ALIKE), "wheel", 2)
    what = "the output and the input 'speed' of part 'wheel' would be one variable of its FMU; rename one of them"
    assert str(error.value) == f"{tmp_path}/rig.yaml:6 parts[0]: {what}"


@pytest.mark.parametrize("version", ["2", "3"])
def test_the_command_writes_a_part(command, version):
    Path("wheel.py").write_text(WHEEL)
    Path("shaft.yaml").write_text(COUPLED)
    code, out, err = command(
        "fmu", "shaft.yaml", "--part", "wheel", "--fmi", version, "--set", "parts.wheel.step=0.1 ms"
    )
    assert (code, err) == (0, [])
    assert out.startswith(f"wrote    wheel.fmu: FMI {version}.0, ") and out.endswith(" KiB, steps of any length\n")
    with zipfile.ZipFile("wheel.fmu") as archive:
        assert ElementTree.fromstring(archive.read("modelDescription.xml")).attrib["modelName"] == "wheel"
        page = archive.read("documentation/index.html").decode()
    assert "Steps may have any length; its integrator divides them into steps of at most 0.0001 s." in page


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (("--part", "wheels"), "--part: there is no part 'wheels'; did you mean 'wheel'?"),
        (
            ("--part", "wheel", "--input", "*/reference_position"),
            "--input: a part has the inputs that its file declares; leave the option out",
        ),
        (
            ("--part", "wheel", "-o", "wheel.py"),
            "-o: wheel.py: the file must have the suffix .fmu; choose another name",
        ),
    ],
)
def test_parts_that_there_are_not(command, options, what):
    Path("wheel.py").write_text(WHEEL)
    Path("shaft.yaml").write_text(COUPLED)
    assert command.refuses("fmu", "shaft.yaml", *options) == [what]


def test_a_rig_without_parts(command):
    what = "--part: the rig has no parts; leave the option out to export the rig"
    assert command.refuses("fmu", "rig.yaml", "--part", "wheel") == [what]


def test_any_other_part_in_python_has_none(rig_of, tmp_path, monkeypatch):
    rig = rig_of(RIG)
    monkeypatch.setattr(type(rig), "native", False)
    with pytest.raises(CosimError) as error:
        fmu_of(rig, 2)
    what = "parts of a tick run in Python; an FMU holds machine code only: take them out"
    assert str(error.value) == f"{tmp_path}/rig.yaml: {what}"


def test_an_interpreted_rig_has_none(sample):
    with pytest.raises(CosimError) as error:
        fmu_of(sample("crane", interpret=True), 2)
    assert (
        str(error.value) == "cosim fmu: the rig is interpreted; an FMU holds machine code only: unset COSIM_INTERPRET"
    )


def test_without_a_compiler_the_fix_is_named(command, monkeypatch):
    monkeypatch.setattr(linking, "find_spec", lambda name: None)
    monkeypatch.setattr(linking.shutil, "which", lambda name: None)
    what = "there is no C compiler to link with; install one, or ziglang: pip install cosim[fmu-export]"
    assert command.refuses("fmu", "rig.yaml") == [f"cosim fmu: {what}"]


def test_another_machine_is_refused(command, monkeypatch):
    monkeypatch.setattr(platforms.platform, "machine", lambda: "riscv64")
    what = "FMUs are not built on Linux riscv64; use a machine with Linux x86_64"
    assert command.refuses("fmu", "rig.yaml") == [f"cosim fmu: {what}"]


def test_both_compilers_give_an_fmu(rig_of, monkeypatch, tmp_path):
    """The system's and ziglang's, with the same results."""
    rig, found = rig_of(RIG), []
    for k, compiler in enumerate((["cc"], linking.compiler_of(platforms.this_platform()))):
        monkeypatch.setattr(export, "compiler_of", lambda platform, compiler=compiler: compiler)
        (tmp_path / f"{k}.fmu").write_bytes(fmu_of(rig, 2))
        found.append(fmpy.simulate_fmu(str(tmp_path / f"{k}.fmu"), stop_time=0.4, step_size=1e-3).tolist())
    assert found[0] == found[1]


def test_a_failing_compiler_is_reported_in_one_line(rig_of, monkeypatch):
    monkeypatch.setattr(export, "compiler_of", lambda platform: ["false"])
    with pytest.raises(CosimError) as error:
        fmu_of(rig_of(RIG), 2)
    fix = "check that it can build shared objects"
    assert str(error.value) == f"false: the C compiler failed: exit code 1; {fix}"


def test_files_of_the_rig_are_not_overwritten(command):
    assert command.refuses("fmu", "rig.yaml", "-o", "rig.yaml") == [
        "-o: rig.yaml: is the rig itself; choose another file"
    ]
    wrong = "-o: a.zip: the file must have the suffix .fmu; choose another name"
    assert command.refuses("fmu", "rig.yaml", "-o", "a.zip") == [wrong]


@pytest.mark.parametrize(("name", "identifier"), [("7 axes", "_7_axes"), ("crane", "crane"), ("à-b", "__b")])
def test_names_of_binaries_are_identifiers(name, identifier):
    assert UnitOutline(name, "", 1e-3, 1.0, "", None).identifier == identifier


def test_the_part_on_the_page_is_used_in_another_rig(command, tmp_path):
    """With the block in its place the motion is the same to rounding."""
    page = (FOLDER.parent / "docs/howto/export-fmu.md").read_text()
    (words,) = re.findall(r"^cosim fmu (\S+) --part hoist$", page, re.MULTILINE)
    (text,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert command("fmu", FOLDER.parent / words, "--part", "hoist")[0] == 0
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
