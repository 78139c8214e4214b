"""Names of parts of links that no user gave: none of them is in messages, tables and exports."""

from pathlib import Path

import pytest

from cosim import InputError
from cosim.mechanics.multibody.part_names import given_names, part_of, shown_name, whole_of
from cosim.rig.rig import load_rig
from cosim.rig.scene import scene_of_rig, view_of
from tests.derive.equations.derivations import RIGS

BOOM = """\
name: boom
mechanism:
  bodies:
    - {name: boom, joint: hub, axis: [0, 0, 1]}
    - {name: camera, type: fixed, parent: boom, origin: {xyz: [1.5, 0, 0]}, mass: 0.4 kg, inertia: [1e-4, 1e-4, 1e-4]}
  elastic: [{link: boom, beam: {length: 1.5 m, stiffness: {mass: 0.3 kg/m, EI: [90, 90]}, modes: {bend_y: 1}KEYS}}]
schedule: {step: 1 ms, duration: 2 ms}
"""
KNOWN = "known: base, boom, camera"
HINTS = {"boom@modes": KNOWN, "boom@1": "did you mean 'boom'?", "nose": KNOWN}
KINDS = {"modes": "", "rigid elements": ", rigid_elements: 3"}


def test_a_part_knows_its_link():
    name = part_of("boom", 3)
    assert (whole_of(name), shown_name(name), given_names(["boom", name])) == ("boom", "boom (3)", ["boom"])
    assert (whole_of("boom"), shown_name("boom")) == ("boom", "boom")


@pytest.mark.parametrize("name", HINTS)
def test_frames_that_are_suggested_are_those_of_the_user(command, name):
    Path("boom.yaml").write_text(BOOM.replace("KEYS", ""))
    model = load_rig("boom.yaml").plant.model
    with pytest.raises(InputError) as error:
        model.frame_pose(model.neutral(), name)
    assert str(error.value) == f"link '{name}' does not exist; {HINTS[name]}"
    assert model.joint_names == ("hub",)


@pytest.mark.parametrize("option", ["--frame", "--load"])
def test_equations_refuse_parts_and_do_not_suggest_them(command, option):
    Path("boom.yaml").write_text(BOOM.replace("KEYS", ""))
    for name in ("nose", "boom@1"):
        (line,) = command.refuses("derive", "boom.yaml", "--equations", option, name)
        assert line == f"{option}: frame '{name}' does not exist; {HINTS[name]}"


REPORTS = {
    "check": "mechanism boom: ",
    "run --json out.json": "boom",
    "derive --graph": "boom",
    "derive --compare --json out.json": "boom: ",
    "derive out.txt --equations --symbols": "boom",
    "derive out.tex --equations --to latex": "boom",
    "derive out.py --equations --to python": "boom",
}
OF_ELEMENTS = "check", "derive --compare --json out.json"


@pytest.mark.parametrize(
    ("kind", "line"), [*(("modes", line) for line in REPORTS), *(("rigid elements", line) for line in OF_ELEMENTS)]
)
def test_no_report_has_a_name_of_a_part(command, kind, line):
    """The joints of the file are counted."""
    Path("boom.yaml").write_text(BOOM.replace("KEYS", KINDS[kind]))
    first, *more = line.split()
    code, out, err = command(first, "boom.yaml", *more)
    assert (code, err) == (0, [])
    shown = out + "".join(file.read_text() for file in Path().glob("out*"))
    assert REPORTS[line] in shown and "@" not in shown
    if line in OF_ELEMENTS and kind == "modes":
        assert ("1 joint, 2 dofs, gravity" if first == "check" else "1 moving body, 2 dof;") in shown


def test_bodies_of_the_scene_and_frames_of_a_view():
    rig = load_rig(RIGS / "elastic" / "two_link_arm.yaml")
    names = [body.name for body in scene_of_rig(rig).bodies]
    assert names[:4] == ["base", "upper_arm", "upper_arm (modes)", "upper_arm (1)"]
    view = view_of(rig, [f"{name}/position" for name in rig.plant.model.coordinate_names], 30.0)
    assert view is not None
    links = [(link.name, link.parent) for link in view.links]
    assert links == [("elbow_motor", "upper_arm (1)"), ("payload", "forearm (1)"), ("tool", "forearm (1)")]
    assert not any("@" in name for name in names)
