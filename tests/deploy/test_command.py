"""`cosim build`: the files it writes, and what it refuses."""

import json
from pathlib import Path

import pytest

from cosim.deploy.lane_code import LANE_FUNCTIONS
from cosim.deploy.tick_code import FUNCTIONS
from tests.kit.samples import FOLDER

NO_RECORDING = "none.mcap: cannot read the recording: No such file or directory; check the path"
RIG = FOLDER / "two_link.yaml"


def test_a_module_and_its_description_are_written(command):
    code, out, err = command("build", RIG, "--target", "wasm", "-o", "new/folder")
    assert (code, err) == (0, [])
    assert out.startswith("wrote    new/folder/two_link.wasm: ")
    described = json.loads(Path("new/folder/two_link.json").read_text())
    assert described["functions"] == [f"two_link_{name}" for name in (*FUNCTIONS, *LANE_FUNCTIONS)]
    (gain,) = (each for each in described["parameters"] if each["name"] == "swing.kp/shoulder")
    place = described["places"]["parameters"]
    assert place["at"] <= gain["place"] < place["at"] + place["shape"][0]
    assert (gain["value"], gain["least"], gain["greatest"]) == (400.0, 0.0, None)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--target", "wsm"], "--target: there is no target 'wsm'; did you mean 'wasm'?"),
        (["--target", "wasm", "--cpu", "generik"], "--cpu: wasm has no processor 'generik'; did you mean 'generic'?"),
        (["--target", "x86_64", "--cpu", "i686"], "--cpu: 'i686' runs no code for x86_64; name another processor"),
        (["--target", "ptx", "--cpu", "sm_20"], "--cpu: ptx has no processor 'sm_20'; did you mean 'sm_120'?"),
        (["--target", "wasm", "-o", "rig.yaml/out"], "-o: rig.yaml: is no folder; name one"),
        (["--target", "x86_64", "--check", "none.mcap"], NO_RECORDING),
    ],
)
def test_wrong_words_are_refused_before_anything_is_written(words, message, command, tmp_path):
    before = sorted(tmp_path.iterdir())
    assert command.refuses("build", RIG, *words) == [message]
    assert sorted(tmp_path.iterdir()) == before
