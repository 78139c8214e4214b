"""`cosim export code`: the files it writes, and what it refuses."""

import json
from pathlib import Path

import pytest

from cosim.apps.deploy.tick_code import FUNCTIONS, LANE_FUNCTIONS
from tests.kit.samples import FOLDER

REFUSED = [
    "two_link --target wsm",
    "two_link --target aarch",
    "two_link --target wasm --cpu generik",
    "two_link --target x86_64 --cpu i686",
    "two_link --target aarch64 --cpu cortex-a73x",
    "two_link --target ptx --cpu sm_20",
    "two_link --target wasm -o rig.yaml/out",
    "two_link --target x86_64 --check none.mcap",
    "two_link --target wasm --check none.mcap",
    "dynamometer/bench --target aarch64",
    "arm_can --target ptx",
    "arm_can --target page",
    "arm_can --target fmu",
    "two_link --target fmu --cpu generic",
    "two_link --target fmu --check none.mcap",
    "two_link --target wasm --fmi 3",
    "two_link --target x86_64 --part hoist",
    "two_link --target page --input */reference_position",
    "two_link --target page -o page.htm",
    "two_link --target fmu -o none/unit.zip",
]


def test_a_module_and_its_description_are_written(command):
    out = command.prints("export", "code", FOLDER / "two_link.yaml", "--target", "wasm", "-o", "new/folder")
    assert out.startswith("wrote    new/folder/two_link.wasm: ")
    described = json.loads(Path("new/folder/two_link.json").read_text())
    assert described["functions"] == [f"two_link_{name}" for name in (*FUNCTIONS, *LANE_FUNCTIONS)]
    (gain,) = (each for each in described["parameters"] if each["name"] == "swing.kp/shoulder")
    place = described["places"]["parameters"]
    assert place["at"] <= gain["place"] < place["at"] + place["shape"][0]
    assert (gain["value"], gain["min"], gain["max"]) == (400.0, 0.0, None)


@pytest.mark.parametrize("words", REFUSED)
def test_wrong_words_are_refused_before_anything_is_written(words, command, said):
    Path("rigs").symlink_to(FOLDER)
    rig, *options = words.split()
    before = sorted(Path().iterdir())
    said(command.refuses("export", "code", f"rigs/{rig}.yaml", *options))
    assert sorted(Path().iterdir()) == before
