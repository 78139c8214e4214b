"""Objects for processors: their header in C and C++, their description, what they need, and names that C refuses."""

import copy
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from cosim import load_rig
from cosim.compile.targets import targets
from cosim.control.limits import CODES
from cosim.deploy.header import header
from cosim.deploy.identifiers import CName, check_names
from cosim.deploy.object_files import PROCESSORS, object_code_of, object_files
from cosim.errors import InputError
from tests.kit.levels import one_of_each
from tests.kit.object_file import assert_freestanding, elf
from tests.kit.samples import FOLDER

COMPILERS = {
    "c99": ["gcc", "-std=c99"],
    "c++98": ["g++", "-std=c++98", "-Wno-long-long", "-x", "c++"],
    "c++17": ["g++", "-std=c++17", "-x", "c++"],
}
STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"]
ARM = {
    "mechanism": {
        "bodies": [
            {"name": "upper", "joint": "a-b", "axis": [0, 1, 0], "mass": 1, "inertia": [1, 1, 1]},
            {"name": "lower", "parent": "upper", "joint": "c", "axis": [0, 1, 0], "mass": 1, "inertia": [1, 1, 1]},
        ]
    },
    "joints": {"all": {"limits": {"velocity": 9, "effort": 9}}},
    "controllers": [{"name": "x-y", "type": "passthrough", "joints": ["a-b"], "kp": 1, "kd": 1}],
}


@pytest.fixture
def files():
    """files(name, target) -> suffix -> content."""

    def make(name, target="x86_64"):
        return object_files(load_rig(FOLDER / f"{name}.yaml"), Path(name).name, targets()[target])

    return make


@one_of_each
@pytest.mark.parametrize("standard", COMPILERS)
@pytest.mark.parametrize("name", ["ur5_sim", "leg_mit", "drives/electromechanical"])
def test_the_header_is_strict_c_and_cpp(files, tmp_path, standard, name):
    if shutil.which(COMPILERS[standard][0]) is None:
        pytest.skip(f"there is no {COMPILERS[standard][0]}")
    stem = Path(name).name
    (tmp_path / f"{stem}.h").write_bytes(files(name)[".h"])
    (tmp_path / "main.c").write_text(f'#include "{stem}.h"\n#include "{stem}.h"\nint main(void) {{ return 0; }}\n')
    words = [*COMPILERS[standard], *STRICT, "main.c"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@one_of_each
@pytest.mark.parametrize("target", PROCESSORS)
@pytest.mark.parametrize("name", ["ur5_sim", "leg_mit", "drives/electromechanical"])
def test_an_object_needs_libm_and_has_no_writable_data(files, tmp_path, target, name):
    content = files(name, target)[".o"]
    assert_freestanding(content)
    _, _, defined = elf(content)
    facts = json.loads(files(name, target)[".json"])
    assert defined == set(facts["functions"])


def test_the_description_tells_what_the_header_does(files):
    made = files("arm_sim")
    facts, text = json.loads(made[".json"]), made[".h"].decode()
    macros = dict(re.findall(r"#define (\w+) (\S+)", text))
    assert int(macros["ARM_SIM_MEMORY"]) == facts["memory"]
    assert float(macros["ARM_SIM_STEP"]) == facts["step"] == 1e-3
    assert int(macros["ARM_SIM_SIGNALS"]) == len(facts["signals"])
    for path, place in facts["places"].items():
        if 0 not in place["shape"]:
            assert int(macros[f"ARM_SIM_AT_{re.sub('[^a-z0-9]+', '_', path).upper()}"]) == place["at"]
    kp = next(each for each in facts["parameters"] if each["name"] == "arm.kp/shoulder")
    assert (kp["value"], kp["least"], kp["greatest"], kp["unit"]) == (60.0, 0.0, None, "N*m/rad")
    assert int(macros["ARM_SIM_PARAMETER_ARM_KP_SHOULDER"]) == kp["place"]
    shown = "arm.kp/shoulder, N*m/rad, at least 0, 60.0 in the rig: effort per position error"
    assert f"#define ARM_SIM_PARAMETER_ARM_KP_SHOULDER {kp['place']} /* {shown} */" in text
    assert {each["key"]: each["code"] for each in facts["faults"] if each["key"] in CODES} == CODES
    assert all(line in text for line in facts["prototypes"])
    assert facts["tasks"][1] == {"name": "arm", "ticks": 1, "phase": 0}


def test_a_period_is_in_ticks(sample):
    rig = sample("arm_sim", "controllers.arm.period=4 ms", "schedule.realtime=no")
    text = header(rig, object_code_of(rig, "arm_sim"))
    assert "#define ARM_SIM_CONTROLLER_ARM_TICKS 4\n#define ARM_SIM_CONTROLLER_ARM_PHASE 0\n" in text
    assert "/* controller 'arm'; does nothing unless tick % 4 == 0 */\n" in text


# --- bad input ------------------------------------------------------------------------------------


@pytest.fixture
def refused(command, tmp_path):
    """refused(rig, name) -> the lines of the message, without the folder."""

    def message(rig, name="arm"):
        file = tmp_path / f"{name}.yaml"
        file.write_text(yaml.safe_dump(rig, sort_keys=False, default_flow_style=None))
        lines = command.refuses("build", f"{name}.yaml", "--target", "aarch64")
        return [line.replace(f"{tmp_path}/", "") for line in lines]

    return message


def renamed(joint="c", controllers=("x-y",)):
    rig = copy.deepcopy(ARM)
    rig["mechanism"]["bodies"][1]["joint"] = joint
    rig["controllers"] = [
        {"name": name, "type": "passthrough", "joints": [each], "kp": 1, "kd": 1}
        for name, each in zip(controllers, ("a-b", joint), strict=False)
    ]
    return rig


def test_two_joints_that_are_one_in_c(refused):
    assert refused(renamed("a_b")) == [
        "arm.yaml:14 joints.a_b: joint 'a_b' and joint 'a-b' are both ARM_JOINT_A_B in C; rename one of them"
    ]


def test_two_controllers_that_are_one_in_c(refused):
    what = "controller 'x_y' and controller 'x-y' are both arm_controller_x_y in C"
    assert refused(renamed(controllers=("x-y", "x_y"))) == [
        f"arm.yaml:23 controllers[1].name: {what}; rename one of them"
    ]


def test_two_signals_that_are_one_in_c(refused):
    """The reference of a joint, and the joint that is named like it."""
    rig = renamed("a_b_reference")
    rig["mechanism"]["bodies"][0]["joint"] = rig["controllers"][0]["joints"][0] = "a_b"
    assert refused(rig) == [
        f"arm.yaml:14 joints.a_b: signal 'a_b/reference_{each}' and signal 'a_b_reference/{each}' are both"
        f" ARM_SIGNAL_A_B_REFERENCE_{each.upper()} in C; rename one of them"
        for each in ("position", "velocity", "acceleration")
    ]


def test_an_identifier_that_is_a_keyword():
    with pytest.raises(InputError) as error:
        check_names([CName("static_assert", "function 'assert'", "static.yaml")])
    what = "function 'assert' is the keyword static_assert in C or C++"
    assert str(error.value) == f"static.yaml: {what}; rename it, or the file of the rig"


def test_a_rig_without_an_identifier(refused):
    assert refused(ARM, "2dof") == [
        "2dof.yaml: the name '2dof' begins with '2', which no identifier of C does; rename the file"
    ]


def test_targets_and_processors_that_do_not_exist(command):
    assert command.refuses("build", "rig.yaml", "--target", "aarch") == [
        "--target: there is no target 'aarch'; did you mean 'aarch64'?"
    ]
    assert command.refuses("build", "rig.yaml", "--target", "aarch64", "--cpu", "cortex-a73x") == [
        "--cpu: aarch64 has no processor 'cortex-a73x'; did you mean 'cortex-a73'?"
    ]


def test_real_motors_in_closed_loops(command):
    bench = FOLDER / "dynamometer" / "bench.yaml"
    what = "real motors in closed loops start from a search for a state in which the loops close"
    assert command.refuses("build", bench, "--target", "aarch64") == [
        f"{bench}:5 drivers: {what}, which an object file does not hold; take the drivers out"
    ]
