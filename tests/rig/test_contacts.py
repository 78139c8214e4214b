"""Contacts of a rig: what they become, what a robot file adds to them, and their numbers."""

from __future__ import annotations

import math
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from cosim import load_rig
from cosim.cli.contact_lines import contact_lines
from cosim.core.errors import InputError, InputErrors
from cosim.mechanics.multibody.contact.contact_solver import SolverBounds
from cosim.mechanics.multibody.contact.gaps import MOST_POINTS, is_possible, points_of
from cosim.mechanics.multibody.contact.hulls import hull_of
from cosim.mechanics.multibody.contact.shapes import (
    BallShape,
    BoxShape,
    CapsuleShape,
    ContactLaw,
    CylinderShape,
    HalfSpace,
    HullShape,
    TerrainShape,
)
from cosim.mechanics.multibody.description.elastic_links import with_nodes
from cosim.mechanics.multibody.description.export.writer import ENDINGS, robot_text
from cosim.mechanics.multibody.mechanism import GRAVITY, ContactBound
from cosim.rig.parametrised_rig import plant_with
from cosim.rig.plant_parameters import Changes, contact_parameters
from cosim.rig.sections.rig_spec import read_rig
from tests.kit.refusals import raised, refusal

BODIES = """\
mechanism:
  bodies:
    - {name: rod, joint: hinge, mass: 1 kg, inertia: [1, 1, 1]}
    - {name: cart, joint: slide, type: prismatic, mass: 2 kg, inertia: [1, 1, 1], parent: base}
    - {name: tip, type: fixed, parent: rod, origin: {xyz: [0, 0, 1]}, mass: 0.5 kg}
    - {name: table, type: fixed, parent: base, mass: 100 kg}
"""
INERTIAL = '<inertial><mass value="{}"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def read(*entries, more="", overrides=(), mechanism=BODIES):
    """The mechanism with these contacts, from line 8 of the rig on."""
    lines = "".join(f"    - {{{entry}}}\n" for entry in entries)
    Path("rig.yaml").write_text(f"{mechanism}  contacts:\n{lines}{more}")
    return read_rig("rig.yaml", overrides).mechanism.description


def contact(entry, **keys):
    (found,) = read(f"name: c, {entry}", **keys).contacts
    return found


SHAPES = {
    "point: [1 cm, 0, 0]": (BallShape(0.0), [0.01, 0, 0]),
    "sphere: 2 cm": (BallShape(0.02), [0, 0, 0]),
    "sphere: 2 cm, at: [0, 0, 3 mm]": (BallShape(0.02), [0, 0, 0.003]),
    "capsule: {radius: 5 mm, length: 4 cm}": (CapsuleShape(0.005, 0.04), [0, 0, 0]),
    "cylinder: {radius: 5 cm, length: 2 cm}": (CylinderShape(0.05, 0.02), [0, 0, 0]),
    "box: [10 cm, 4 cm, 2 cm], origin: {xyz: [0, 1, 0]}": (BoxShape((0.1, 0.04, 0.02)), [0, 1, 0]),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_each_shape_on_both_sides(shape):
    expected, at = SHAPES[shape]
    one = contact(f"link: rod, {shape}, with: ground, friction: 0.5")
    two = contact(f"link: cart, sphere: 1 cm, with: {{link: rod, {shape}}}, friction: 0.5")
    for found, k in ((one, 0), (two, 1)):
        link, pose = found.ends[k]
        assert (link, found.shapes[k]) == ("rod", expected)
        assert pose.position.tolist() == pytest.approx(at) and pose.rotation.tolist() == np.eye(3).tolist()
    assert (one.ends[1][0], one.shapes[1]) == ("base", HalfSpace())
    assert str(one.place) == "rig.yaml:8 mechanism.contacts[0]"


def test_a_plane_and_a_frame_are_turned():
    found = contact(
        "link: rod, point: [0, 0, 1], with: {link: cart, plane: {xyz: [0, 0, 2], rpy: [90 deg, 0, 0]}}, friction: 1"
    )
    assert found.shapes == (BallShape(0.0), HalfSpace())
    assert found.ends[1][1].position.tolist() == [0, 0, 2] and found.ends[1][1].rotation[:, 2].tolist() == [0, -1, 0]
    turned = contact("link: rod, box: [1, 2, 3], origin: {rpy: [0, 0, 90 deg]}, with: ground, friction: 1")
    assert turned.ends[0][1].rotation.tolist() == [[0, -1, 0], [1, 0, 0], [0, 0, 1]]


def test_the_numbers_of_a_law():
    law = contact("link: rod, sphere: 1 cm, with: ground, friction: 0.7").law
    assert law == ContactLaw(0.7, 0.7, stiffness=law.stiffness)
    own = "friction: {static: 0.8, sliding: 0.6}, torsional: 1 mm, rolling: 0.5 mm, stiffness: 2 N/mm, restitution: 0.3"
    given = contact(f"link: rod, sphere: 1 cm, with: ground, {own}").law
    assert given == ContactLaw(0.8, 0.6, 0.001, 0.0005, 2000.0, 0.3)
    assert contact("link: rod, sphere: 1 cm, with: ground, friction: 1, stiffness: rigid").law.stiffness is None


def test_the_ground_gives_its_friction_where_a_contact_has_none():
    more = "  ground: {friction: {static: 0.5, sliding: 0.4}, xyz: [0, 0, -1 m], rpy: [0, 10 deg, 0]}\n"
    found = read(
        "name: a, link: rod, sphere: 1, with: ground",
        "name: b, link: rod, sphere: 1, with: ground, friction: 1",
        more=more,
    )
    assert [(each.law.static, each.law.sliding) for each in found.contacts] == [(0.5, 0.4), (1, 1)]
    _, pose = found.contacts[0].ends[1]
    assert pose.position.tolist() == [0, 0, -1]
    assert pose.rotation[:, 2] == pytest.approx([math.sin(math.radians(10)), 0, math.cos(math.radians(10))])


def test_the_friction_of_the_ground_is_none_of_other_shapes_that_stand():
    more = "  ground: {friction: 0.5}\n"
    assert "missing key 'friction'" in refusal(
        read, "name: c, link: rod, sphere: 1, with: {link: base, sphere: 1}", more=more
    )


@pytest.mark.parametrize(
    ("mass", "stiffness"),
    # 3.5 kg move beside the mass of the rod: 1e7 N/m per 30 kg; at most 1e9/s² times the lighter body
    [(0.5, 1e6), (5.5, 3e6), (26.5, 1e7), (296.5, 1e8), (0.01, 1e6)],
)
def test_the_usual_stiffness_has_one_digit_in_proportion_to_what_moves(mass, stiffness):
    bodies = BODIES.replace("name: rod, joint: hinge, mass: 1 kg", f"name: rod, joint: hinge, mass: {mass} kg")
    bodies = bodies.replace("mass: 2 kg", "mass: 3 kg")
    found = contact("link: cart, sphere: 1 cm, with: ground, friction: 1", mechanism=bodies)
    assert found.law.stiffness == stiffness


def test_a_light_body_has_a_soft_contact():
    """The tip of 1 g is a body of its own, whose contact has at most 1e9/s² times its mass."""
    bodies = BODIES.replace("{name: tip, type: fixed,", "{name: tip, inertia: [1, 1, 1],").replace("0.5 kg", "1 g")
    of_tip = contact("link: tip, sphere: 1 cm, with: ground, friction: 1", mechanism=bodies)
    of_rod = contact("link: rod, sphere: 1 cm, with: {link: cart, sphere: 1}, friction: 1", mechanism=bodies)
    assert (of_tip.law.stiffness, of_rod.law.stiffness) == (1e6, 1e6)
    lighter = bodies.replace("1 g", "0.5 g")
    assert contact("link: tip, sphere: 1 cm, with: ground, friction: 1", mechanism=lighter).law.stiffness == 5e5


def test_a_stiffness_is_refused_by_the_step():
    """√(k/m) h = 30 at most: 9e8 N/m of 1 kg at 1 ms, 1.4e10 N/m at a quarter."""
    entry = "name: c, link: rod, sphere: 1 cm, with: ground, friction: 1, stiffness: 2e9 N/m"
    bodies = BODIES.replace(", mass: 0.5 kg", "")
    assert "give at most 9e+08 N/m" in refusal(read, entry, mechanism=bodies)
    for fix in ("schedule.substeps=4", "schedule.step=0.25 ms", "mechanism.contacts.c.stiffness=8e8"):
        assert len(read(entry, mechanism=bodies, overrides=[fix]).contacts) == 1


@pytest.mark.parametrize("keys", ["{}", "{tolerance: 1e-7, passes: 8}"])
def test_bounds_of_the_solver(keys):
    entry = "name: c, link: rod, sphere: 1 cm, with: ground, friction: 1"
    read(entry, more=f"schedule: {{contact: {keys}}}\n")
    expected = SolverBounds() if keys == "{}" else SolverBounds(1e-7, 8)
    assert read_rig("rig.yaml").schedule.contact == expected


@pytest.mark.parametrize(
    "keys", ["8", "{pases: 8}", "{passes: 0}", "{passes: few}", "{passes: 20000}", "{tolerance: 0}", "{tolerance: 1 s}"]
)
def test_bounds_of_the_solver_that_are_wrong(keys, said):
    entry = "name: c, link: rod, sphere: 1 cm, with: ground, friction: 1"
    said(raised(InputErrors, read, entry, more=f"schedule: {{contact: {keys}}}\n"))


def test_bounds_of_the_solver_without_contacts(said):
    said(raised(InputErrors, read_rig, write(f"{BODIES}schedule: {{contact: {{passes: 8}}}}\n")))


def test_contacts_are_changed_by_name():
    entries = (
        "name: a, link: rod, sphere: 1 cm, with: ground, friction: 1",
        "name: b, link: cart, sphere: 1 cm, with: ground, friction: 1",
    )
    changed = [
        "mechanism.contacts.b.friction=0.3",
        "mechanism.contacts.a.restitution=0.5",
        "mechanism.contacts.a.stiffness=rigid",
    ]
    a, b = read(*entries, overrides=changed).contacts
    assert (a.law.restitution, a.law.stiffness, b.law.static, b.law.restitution) == (0.5, None, 0.3, 0)


# --- terrain ---


@pytest.mark.parametrize("form", ["csv", "blanks", "npy"])
def test_a_terrain(form):
    """Rows are along x, and the middle of the grid is the origin."""
    heights = np.array([[0.0, 0.1, 0.2], [0.3, 0.4, 0.5]])
    if form == "npy":
        np.save("t.npy", heights)
    else:
        sign = "," if form == "csv" else "  "
        Path("t.txt").write_text("# m\n" + "\n".join(sign.join(map(str, row)) for row in heights.tolist()))
    file = "t.npy" if form == "npy" else "t.txt"
    found = contact(
        "link: rod, sphere: 1 cm, with: ground",
        more=f"  ground: {{friction: 1, terrain: {{file: {file}, spacing: 10 cm}}}}\n",
    )
    terrain = found.shapes[1]
    assert isinstance(terrain, TerrainShape)
    assert (terrain.x.tolist(), terrain.y.tolist()) == (pytest.approx([-0.05, 0.05]), pytest.approx([-0.1, 0, 0.1]))
    assert terrain.heights.tolist() == heights.tolist()


@pytest.mark.parametrize("text", ["1 2\n3\n", "1 2\n3 x\n", "1 2\n", "", "1 2\n3 nan\n"])
def test_a_terrain_is_a_grid_of_numbers(text, said):
    Path("t.csv").write_text(text)
    more = "  ground: {friction: 1, terrain: {file: t.csv, spacing: 10 cm}}\n"
    said(raised(InputErrors, contact, "link: rod, sphere: 1 cm, with: ground", more=more))


# --- meshes ---

CORNERS = np.array([[x, y, z] for x in (0.0, 10.0) for y in (0.0, 20.0) for z in (0.0, 30.0)])
HULL = "link: rod, mesh: {file: FILE, scale: 0.001}, with: ground, friction: 1"


def triangles(corners=CORNERS):
    return corners[ConvexHull(corners).simplices]


def stl(form):
    """The bytes of an STL file with the triangles of the box."""
    if form == "text":
        lines = ["solid box"]
        for triangle in triangles():
            lines += ["facet normal 0 0 0", "outer loop", *(f"vertex {x} {y} {z}" for x, y, z in triangle)]
            lines += ["endloop", "endfacet"]
        return "\n".join([*lines, "endsolid"]).encode()
    faces = [struct.pack("<12fH", 0, 0, 0, *triangle.ravel(), 0) for triangle in triangles()]
    return b"solid, but binary".ljust(80) + struct.pack("<I", len(faces)) + b"".join(faces)


FILES = {
    "box.stl": stl("binary"),
    "text.STL": stl("text"),
    "box.obj": "".join(f"v {x} {y} {z} 1\n" for x, y, z in CORNERS).encode() + b"vn 0 0 1\nf 1 2 3\n",
}


@pytest.mark.parametrize("name", FILES)
def test_a_mesh_of_each_format(name):
    Path(name).write_bytes(FILES[name])
    found = contact(HULL.replace("FILE", name))
    (shape, plane), (extent,) = found.shapes, [line.split(",")[0] for line in contact_lines(read_again())]
    assert isinstance(shape, HullShape) and isinstance(plane, HalfSpace)
    assert np.array(sorted(shape.corners.tolist())) == pytest.approx(0.001 * CORNERS)
    assert extent == "contact c: mesh 10 x 20 x 30 mm of rod with plane of the ground"


def read_again():
    return read_rig("rig.yaml").mechanism.description


WRONG = {
    "none.stl": None,
    "mesh.dae": b"<COLLADA/>",
    "rubbish.stl": bytes(range(256)) * 3,
    "short.stl": stl("binary")[:-7],
    "empty.stl": b"",
    "empty.obj": b"# nothing\n",
    "word.obj": b"v 0 0 0\nv 1 x 0\n",
    "nan.obj": b"v 0 0 0\nv 1 nan 0\n",
    "flat.obj": b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 1 1 0\n",
    "point.obj": b"v 1 2 3\n",
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_mesh(name, said):
    if (data := WRONG[name]) is not None:
        Path(name).write_bytes(data)
    said(raised((InputError, InputErrors), contact, HULL.replace("FILE", name)))


@pytest.mark.parametrize("keys", ["box.stl", "{scale: 1}", "{file: box.stl, scale: 0}", "{file: box.stl, units: mm}"])
def test_keys_of_a_mesh(keys, said):
    Path("box.stl").write_bytes(FILES["box.stl"])
    said(raised(InputErrors, contact, f"link: rod, mesh: {keys}, with: ground, friction: 1"))


@pytest.mark.parametrize("other", ["sphere: 1 cm", "box: [1, 1, 1]", "mesh: {file: box.stl}"])
def test_what_a_mesh_does_not_touch_yet(other, said):
    Path("box.stl").write_bytes(FILES["box.stl"])
    said(
        raised(InputErrors, contact, f"link: rod, {other}, with: {{link: cart, mesh: {{file: box.stl}}}}, friction: 1")
    )


def test_a_mesh_of_many_corners_is_warned_of(said):
    places = np.random.default_rng(0).normal(size=(400, 3))
    places /= np.linalg.norm(places, axis=1)[:, None]
    Path("ball.obj").write_text("".join(f"v {x} {y} {z}\n" for x, y, z in places))
    contact(HULL.replace("FILE", "ball.obj"))
    said([line for line in read_again().warnings if "hull" in line])


# --- shapes of a robot file ---


def collision(shape, origin=""):
    return f"<collision>{origin}<geometry>{shape}</geometry></collision>"


BALL, BOX = '<sphere radius="0.03"/>', '<box size="0.1 0.2 0.3"/>'
MESH, ROUND = '<mesh filename="a.stl"/>', '<cylinder radius="0.1" length="0.2"/>'
SHAPES_OF = {
    "body": collision(BOX),
    "thigh": "",
    "shank": collision(MESH) + collision(ROUND),
    "foot": collision(BALL, '<origin xyz="0 0 0.02"/>') + collision(BALL) + collision(MESH),
    "hand": collision(MESH),
}
JOINTS = {"hip": ("body", "thigh"), "knee": ("thigh", "shank"), "ankle": ("shank", "foot"), "wrist": ("body", "hand")}


def robot(**shapes):
    links = "\n".join(
        f'<link name="{name}">{INERTIAL.format(2.0)}{inside}</link>' for name, inside in (SHAPES_OF | shapes).items()
    )
    joints = "".join(
        f'<joint name="{name}" type="continuous"><parent link="{a}"/><child link="{b}"/><axis xyz="0 1 0"/></joint>'
        for name, (a, b) in JOINTS.items()
    )
    Path("robot.urdf").write_text(f'<robot name="r">\n{links}\n{joints}\n</robot>\n')
    return "mechanism:\n  urdf: robot.urdf\n  floating_base: true\n"


def test_the_collision_shapes_of_links():
    found = read("name: feet, shapes: collision, links: [foot, body], with: ground, friction: 0.6", mechanism=robot())
    assert [each.name for each in found.contacts] == ["feet/foot", "feet/foot/2", "feet/body"]
    assert [each.ends[0][1].position.tolist() for each in found.contacts] == [[0, 0, 0.02], [0, 0, 0], [0, 0, 0]]
    assert found.contacts[2].shapes[0] == BoxShape((0.1, 0.2, 0.3)) and found.contacts[0].ends[1][0] == "world"
    assert {each.law for each in found.contacts} == {ContactLaw(0.6, 0.6, stiffness=3e6)}
    assert [line for line in found.warnings if "touch nothing" in line] == [
        "robot.urdf:5 link 'foot': shapes of link 'foot' that touch nothing, because they are not read: 1 mesh"
    ]


@pytest.mark.parametrize(
    "entry",
    [
        "shapes: collision, links: [thigh], with: ground",
        "shapes: collision, links: [hand], with: ground",
        "shapes: collision, links: [fot], with: ground",
        "shapes: collision, links: [shank], with: {link: body, box: [1, 1, 1]}",
    ],
)
def test_links_without_shapes_of_their_own(entry, said):
    said(raised(InputErrors, read, f"name: c, {entry}, friction: 1", mechanism=robot()))


def test_numbers_of_a_shape_that_cannot_be_read(said):
    mechanism = robot(foot=collision('<sphere radius="big"/>'))
    assert read_rig(write(mechanism)).mechanism.description.contacts == ()  # no error of a rig that needs no shapes
    said(
        raised(
            InputErrors,
            read,
            "name: c, shapes: collision, links: [foot], with: ground, friction: 1",
            mechanism=mechanism,
        )
    )


def write(text):
    Path("rig.yaml").write_text(text)
    return "rig.yaml"


def test_a_robot_may_touch_itself():
    """The foot is next to the shank, which is next to the massless thigh; cylinders have no contact with boxes."""
    found = read_rig(write(robot() + "  self_contact: {friction: 0.2, stiffness: rigid}\n")).mechanism.description
    assert [each.name for each in found.contacts] == ["self_contact/body/foot", "self_contact/body/foot/2"]
    (warning,) = (line for line in found.warnings if "not simulated" in line)
    assert warning.endswith(
        "mechanism.self_contact: pairs of shapes whose contact is not simulated: 1 of box and cylinder"
    )
    pairs = read_rig(write(robot() + "  self_contact: {pairs: [[shank, foot]], friction: 0.2}\n")).mechanism.description
    assert [each.name for each in pairs.contacts] == ["self_contact/shank/foot", "self_contact/shank/foot/2"]


def test_a_robot_that_touches_itself_has_limits():
    limits = "limits: {normal_force: 20 N, depth: 1 mm, actions: {depth: warn}}"
    found = read_rig(write(robot() + f"  self_contact: {{friction: 0.2, {limits}}}\n")).mechanism.description
    expected = (ContactBound("normal_force", 20.0, True), ContactBound("depth", 1e-3, False))
    assert [each.limits for each in found.contacts] == [expected] * 2
    (plain,) = read_rig(write(robot() + "  self_contact: {friction: 0.2}\n")).mechanism.description.contacts[:1]
    assert plain.limits == ()


@pytest.mark.parametrize(
    "given",
    [
        "true",
        "{pairs: [[foot, hand]], friction: 1}",
        "{pairs: [[foot, food]], friction: 1}",
        "{pairs: [[foot, foot]], friction: 1}",
    ],
)
def test_what_cannot_touch_itself(given, said):
    said(raised(InputErrors, read_rig, write(robot() + f"  self_contact: {given}\n")))


def test_too_many_points_of_a_robot_with_itself():
    boxes = collision(BOX) * 5
    rig = write(robot(foot=boxes) + "  self_contact: {pairs: [[body, foot]], friction: 1}\n")
    assert "with it the contacts have 65 points" in refusal(read_rig, rig)


# --- the rig ---


def test_contacts_are_listed(said, command):
    own = "friction: {static: 0.8, sliding: 0.6}, rolling: 1 mm, restitution: 0.5"
    more = f"  ground: {{friction: 0.7}}\n  self_contact: {{{own}}}\n"
    found = read("name: feet, shapes: collision, links: [foot], with: ground", more=more, mechanism=robot())
    said(list(contact_lines(found)))
    lines = command.prints("check", "rig.yaml")
    assert all(f"    {line}\n" in lines for line in contact_lines(found)) and ", 4 contacts," in lines
    Path("rig.yaml").write_text(robot())
    what = "collision: 1 box, 3 meshes, 1 cylinder, 2 spheres"
    assert f"{what}; no contacts are declared; add mechanism.contacts\n" in command.prints("check", "rig.yaml")


def test_numbers_of_contacts_are_numbers_of_a_rig():
    """By entry: friction, stiffness and restitution; put in place they are as in a file with these values."""
    entry = "name: {}, {}, with: ground, friction: {}, stiffness: {}, restitution: {}"
    own = entry.format("feet", "shapes: collision, links: [foot, body]", 0.7, "1e5 N/m", 0.1)
    pair = entry.format("cap", "link: shank, sphere: 1 cm", "{static: 0.8, sliding: 0.6}", "rigid", 0)
    read(own, pair, mechanism=robot())
    rig = load_rig("rig.yaml")
    of_feet = {"friction": 0.7, "torsional": 0, "rolling": 0, "stiffness": 1e5, "restitution": 0.1}
    of_cap = {"friction.static": 0.8, "friction.sliding": 0.6, "torsional": 0, "rolling": 0, "restitution": 0}
    expected = {f"mechanism.feet.{key}": value for key, value in of_feet.items()}
    expected |= {f"mechanism.cap.{key}": value for key, value in of_cap.items()}
    of_contacts = ("mechanism.feet.", "mechanism.cap.")
    assert {name: value for name, value in rig.numbers.items() if name.startswith(of_contacts)} == expected
    changed = {"mechanism.feet.friction": 0.3, "mechanism.feet.stiffness": 5e4, "mechanism.cap.friction.sliding": 0.5}
    found, _ = plant_with(rig, list(changed), np.array(list(changed.values())))
    keys = {"mechanism.contacts.feet.friction": "0.3", "mechanism.contacts.feet.stiffness": "5e4"}
    overrides = [f"{key}={value}" for key, value in keys.items()] + ["mechanism.contacts.cap.friction.sliding=0.5"]
    fresh = load_rig("rig.yaml", overrides).plant.mechanism.contacts
    assert [each.law for each in found.mechanism.contacts] == [each.law for each in fresh]


def test_numbers_that_contacts_do_not_share_are_none_of_the_entry():
    contacts = read(
        "name: feet, shapes: collision, links: [foot], with: ground, friction: 1", mechanism=robot()
    ).contacts
    other = [contacts[0], replace(contacts[1], law=replace(contacts[1].law, static=2.0, sliding=2.0))]
    names = [number.name for number in contact_parameters(other)]
    assert "mechanism.feet.friction" not in names and "mechanism.feet.stiffness" in names
    (friction,) = (number for number in contact_parameters(contacts) if number.name.endswith("friction"))
    assert friction.key == "mechanism.contacts.feet.friction" and friction.wrong(np.array([-1.0]))
    changes = Changes()
    friction.put(changes, np.array([0.25]))
    assert {each.law.static for each in changes.contacts.values()} == {0.25} and len(changes.contacts) == 2


def test_every_pair_of_shapes_has_a_number_of_points_or_is_refused():
    grid = np.zeros(2)
    shapes = [
        BallShape(1.0),
        CapsuleShape(1, 1),
        BoxShape((1, 1, 1)),
        CylinderShape(1, 1),
        hull_of(CORNERS)[0],
        HalfSpace(),
        TerrainShape(grid, grid, np.zeros((2, 2))),
    ]
    for first in shapes:
        for second in shapes:
            assert is_possible(first, second) == is_possible(second, first)
            if is_possible(first, second):
                assert 1 <= points_of(first, second) <= MOST_POINTS


# --- what contacts meet ---


@pytest.mark.parametrize("ending", ENDINGS)
def test_no_format_has_contacts_and_an_export_names_them(ending):
    entries = (
        "name: c, link: rod, sphere: 1 cm, with: ground, friction: 1",
        "name: d, link: cart, sphere: 1, with: ground, friction: 1",
    )
    assert "contacts 'c', 'd' are not written: the shapes pass through one another there" in (
        robot_text(read(*entries), ending, GRAVITY).lost
    )
    assert not any("contacts" in line for line in robot_text(read(), ending, GRAVITY).lost)


def test_a_shape_on_a_link_that_bends_is_on_a_node():
    elastic = (
        "  elastic:\n    - {link: rod, beam: {length: 1 m, section: {shape: circle, diameter: 2 cm}, density: 2700,"
        " youngs_modulus: 70 GPa, modes: {bend_z: 1}}}\n"
    )
    bodies = BODIES.replace(", mass: 1 kg, inertia: [1, 1, 1]}", "}", 1).replace("xyz: [0, 0, 1]", "xyz: [1, 0, 0]")
    entries = (
        "name: end, link: rod, point: [1, 0, 0], with: ground, friction: 1",
        "name: root, link: rod, point: [0, 0, 0], with: ground, friction: 1",
        "name: both, link: tip, point: [0, 0, 0], with: {link: rod, sphere: 1 cm, at: [0.5, 0, 0]}, friction: 1",
    )
    found = with_nodes(read(*entries, mechanism=bodies + elastic))
    nodes = {joint.child: joint for joint in found.joints if joint.kind == "node"}
    end, root, both = (contact.ends for contact in found.contacts)
    assert end[0][0] in nodes and end[0][1].position.tolist() == [0, 0, 0]
    assert root[0][0] == "rod"  # the clamped end moves with the frame of the link
    assert both[0][0] == "tip" and both[1][0] in nodes and both[1][0] != end[0][0]


def test_equations_name_the_contacts_that_they_do_not_have(command):
    read("name: c, link: rod, sphere: 1 cm, with: ground, friction: 1")
    assert "hard stops, contacts. tau" in command.prints("derive", "rig.yaml", "--equations")


def test_a_contact_keeps_the_motion_of_what_is_fixed_to_it():
    """Links on fixed joints keep their names and frames, and are one body for the stiffness."""
    found = contact(
        "link: tip, sphere: 1 cm, at: [0, 0, 0.1], with: {link: table, plane: {xyz: [0, 0, 2]}}, friction: 1"
    )
    assert [link for link, _ in found.ends] == ["tip", "table"] and found.law.stiffness == 1e6
    what = "link 'table' stands still, and so does what it is to touch"
    assert what in refusal(read, "name: c, link: table, sphere: 1 cm, with: ground, friction: 1")
