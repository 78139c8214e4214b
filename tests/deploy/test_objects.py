"""Objects for processors: their header in C and C++, their description, what they need, and names that C refuses."""

import json
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
import yaml

from cosim import load_rig
from cosim.apps.deploy.identifiers import CName, check_names
from cosim.apps.deploy.object_files import PROCESSORS, header, object_code_of, object_files
from cosim.control.limits import CODES
from cosim.core.compile.targets import targets
from tests.kit.object_file import assert_freestanding, elf
from tests.kit.refusals import refusal
from tests.kit.samples import FOLDER

COMPILERS = {
    "c99": ["gcc", "-std=c99"],
    "c++98": ["g++", "-std=c++98", "-Wno-long-long", "-x", "c++"],
    "c++17": ["g++", "-std=c++17", "-x", "c++"],
}
STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"]


@cache
def files(name, target):
    """suffix -> content; made once."""
    return object_files(load_rig(FOLDER / f"{name}.yaml"), Path(name).name, targets()[target])


# rigs with simulated motors, with real ones, and with an electric circuit
EACH = list(zip(("arm_sim", "leg_mit", "drives/electromechanical"), PROCESSORS, strict=True))


@pytest.mark.parametrize("standard", COMPILERS)
def test_the_headers_are_strict_c_and_cpp(tmp_path, standard):
    if shutil.which(COMPILERS[standard][0]) is None:
        pytest.skip(f"there is no {COMPILERS[standard][0]}")
    lines = []
    for name, target in EACH:
        stem = Path(name).name
        (tmp_path / f"{stem}.h").write_bytes(files(name, target)[".h"])
        lines += [f'#include "{stem}.h"'] * 2
    (tmp_path / "main.c").write_text("\n".join([*lines, "int main(void) { return 0; }\n"]))
    words = [*COMPILERS[standard], *STRICT, "main.c"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("name", "target"), EACH)
def test_an_object_needs_libm_and_has_no_writable_data(name, target):
    made = files(name, target)
    assert_freestanding(made[".o"])
    _, _, defined = elf(made[".o"])
    assert defined == set(json.loads(made[".json"])["functions"])


def test_the_description_tells_what_the_header_does():
    made = files(*EACH[0])
    facts, text = json.loads(made[".json"]), made[".h"].decode()
    macros = dict(re.findall(r"#define (\w+) (\S+)", text))
    assert int(macros["ARM_SIM_MEMORY"]) == facts["memory"]
    assert float(macros["ARM_SIM_STEP"]) == facts["step"] == 1e-3
    assert int(macros["ARM_SIM_SIGNALS"]) == len(facts["signals"])
    for path, place in facts["places"].items():
        if 0 not in place["shape"]:
            assert int(macros[f"ARM_SIM_AT_{re.sub('[^a-z0-9]+', '_', path).upper()}"]) == place["at"]
    kp = next(each for each in facts["parameters"] if each["name"] == "arm.kp/shoulder")
    assert (kp["value"], kp["min"], kp["max"], kp["unit"]) == (60.0, 0.0, None, "N*m/rad")
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


def arm(first="a-b", second="c", controllers=("x-y",)):
    """An arm whose joints and their controllers have these names."""
    body = {"axis": [0, 1, 0], "mass": 1, "inertia": [1, 1, 1]}
    bodies = [{"name": "upper", "joint": first, **body}, {"name": "lower", "parent": "upper", "joint": second, **body}]
    gains = {"type": "passthrough", "kp": 1, "kd": 1}
    return {
        "mechanism": {"bodies": bodies},
        "joints": {"all": {"limits": {"velocity": 9, "effort": 9}}},
        "controllers": [
            {"name": name, "joints": [joint], **gains}
            for name, joint in zip(controllers, (first, second), strict=False)
        ],
    }


NAMES = {
    "two joints": ("arm", arm(second="a_b")),
    "two controllers": ("arm", arm(controllers=("x-y", "x_y"))),
    "a joint named as the reference of another": ("arm", arm("a_b", "a_b_reference")),
    "no identifier": ("2dof", arm()),
}


@pytest.mark.parametrize("what", NAMES)
def test_names_that_are_one_in_c_or_none(what, command, said):
    name, rig = NAMES[what]
    Path(f"{name}.yaml").write_text(yaml.safe_dump(rig, sort_keys=False, default_flow_style=None))
    said(command.refuses("export", "code", f"{name}.yaml", "--target", "aarch64"))


def test_an_identifier_that_is_a_keyword(said):
    said(refusal(check_names, [CName("static_assert", "function 'assert'", "static.yaml")]))
