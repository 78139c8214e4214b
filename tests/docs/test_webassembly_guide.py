"""The programs of the guide to WebAssembly print what the engine computes."""

import re
import shutil
import subprocess
import sys

import pytest

from cosim import load_rig
from tests.docs.documents import ROOT
from tests.kit.samples import FOLDER

GUIDE = (ROOT / "docs" / "howto" / "run-as-webassembly.md").read_text(encoding="utf-8")
PROGRAMS = {"python": [sys.executable], "js": ["node"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the guide's command was run."""
    found = tmp_path_factory.mktemp("guide")
    shutil.copytree(FOLDER, found / "rigs")
    command = re.search(r"```sh\ncosim (.*?)\n```", GUIDE)[1].split()
    subprocess.run([sys.executable, "-m", "cosim", *command], cwd=found, check=True, capture_output=True)
    return found


@pytest.fixture(scope="module")
def expected():
    run = load_rig(FOLDER / "two_link.yaml").run(duration=1.0, parameters={"swing.kp": [300.0, 150.0]})
    return float(run["shoulder/position"][999])


@pytest.mark.parametrize("language", PROGRAMS)
def test_a_program_of_the_guide_runs(language, folder, expected):
    if shutil.which(PROGRAMS[language][0]) is None:
        pytest.skip(f"there is no {PROGRAMS[language][0]}")
    (text,) = re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
    (folder / f"program.{language}").write_text(text)
    run = subprocess.run(
        [*PROGRAMS[language], f"program.{language}"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert run.stderr == ""
    done, position = run.stdout.split()
    assert (int(done), float(position)) == (1000, pytest.approx(expected, abs=1e-10))
