"""Pages of rigs: what they are made of, how large they are, and what is refused."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path

import pytest

from cosim.apps.deploy.page.page import SCRIPTS, check_functions, known_functions, source, stripped
from cosim.core.compile.operations import OF_TWO
from tests.kit.command import RIG
from tests.kit.refusals import refusal
from tests.kit.rig_page import built_page
from tests.kit.rigs import controller
from tests.kit.samples import FOLDER

UR5 = FOLDER / "ur5_sim.yaml"
LARGEST = 80_000  # bytes of the page of the UR5


@pytest.fixture(scope="module")
def ur5(tmp_path_factory) -> str:
    return built_page(UR5, tmp_path_factory.mktemp("page")).read_text(encoding="utf-8")


def packed(page: str, name: str) -> bytes:
    found = re.search(rf'id="{name}">([^<]*)</script>', page)
    assert found is not None
    return zlib.decompress(base64.b64decode(found[1]))


def test_the_page_of_an_arm_is_small(ur5) -> None:
    assert len(ur5.encode()) <= LARGEST


def test_a_page_has_all_that_it_needs_inside(ur5) -> None:
    assert "{{" not in ur5
    scripts = packed(ur5, "script").decode()
    assert not re.findall(r"""(?:src|href)=["'](?!data:)|https?://|@import|url\(""", ur5 + scripts)
    assert scripts.startswith('"use strict";') and "class Simulation" in scripts
    assert packed(ur5, "module")[:4] == b"\0asm"


def test_what_is_known_of_the_rig(ur5) -> None:
    facts = json.loads(packed(ur5, "facts"))
    names = [parameter["name"] for parameter in facts["parameters"]]
    assert names[:2] == ["arm.trajectory.goal/shoulder_pan_joint", "arm.trajectory.goal/shoulder_lift_joint"]
    assert {"arm.trajectory.duration", "arm.trajectory.delay", "arm.kp/elbow_joint"} <= set(names)
    assert facts["bodies"] == len(facts["scene"]["bodies"]) - 1
    goal = facts["parameters"][0]
    assert goal["unit"] == "rad"
    assert goal["usual"] == pytest.approx([-6.283, 6.283], abs=1e-3)
    assert facts["notes"] == []


def test_all_scripts_are_put_together() -> None:
    folder = Path(__file__).parents[2] / "cosim" / "apps" / "deploy" / "page" / "web"
    assert {f"{name}.js" for name in ("start", *SCRIPTS)} == {file.name for file in folder.glob("*.js")}


def test_comments_and_indentation_are_left_out() -> None:
    text = "// a comment\n  const a = 1; // kept\n\n    /* one line */\n  b('//');\n"
    assert stripped(text) == "const a = 1; // kept\nb('//');"
    assert all("`\n" not in source(f"{name}.js").replace(">`\n", "") or name == "view3d" for name in SCRIPTS)


def test_a_page_has_the_functions_that_ticks_can_need() -> None:
    assert set(known_functions()) >= OF_TWO
    assert {"sin", "cos", "erf", "tanh", "exp", "log"} <= set(known_functions())


def test_a_function_that_the_page_lacks_is_refused_by_name(said) -> None:
    check_functions(["sin", "fmod"])
    said(refusal(check_functions, ["sin", "tgamma", "lgamma"]))


def test_a_page_is_written_beside_its_size(command) -> None:
    out = command.prints("export", "code", FOLDER / "two_link.yaml", "--target", "page")
    assert re.fullmatch(r"wrote    two_link\.html: \d+\.\d kB", out.strip())
    assert Path("two_link.html").stat().st_size < LARGEST


REFUSED = {
    "an emergency stop": f"{RIG}guard: {{estop: {{key: space}}}}\n",
    "a controller in Python": re.sub(r"type: pid.*}}", "type: push.py}", RIG),
}


@pytest.mark.parametrize("what", REFUSED)
def test_rigs_of_which_there_is_no_page(what, command, said) -> None:
    Path("rig.yaml").write_text(REFUSED[what])
    Path("push.py").write_text(controller("effort = np.array([float(q[0])])"))
    said(command.refuses("export", "code", "rig.yaml", "--target", "page"))
    assert not list(Path().glob("*.html"))
