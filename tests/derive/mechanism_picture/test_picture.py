"""`cosim derive --picture`: what is drawn lies where the model has it, and errors in one line."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.patches import Circle

from cosim.derive.mechanism_picture.command import closed, pictured, run_postures
from cosim.derive.mechanism_picture.figure import figure_of
from cosim.derive.mechanism_picture.pen import PIN, coil, hatches, hull
from cosim.derive.mechanism_picture.stage import stage_of
from cosim.rig.rig import load_rig
from tests.derive.equations.derivations import RIGS

FOUR_BAR = RIGS / "mechanisms" / "four_bar.yaml"
SLIDER_CRANK = RIGS / "mechanisms" / "slider_crank.yaml"
PENDULUM = """\
name: swing
description: A double pendulum in the plane of x and z.
mechanism:
  bodies:
    - {name: upper, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}
    - {name: lower, axis: [0, 1, 0], origin: {xyz: [0, 0, -0.8]}, mass: 1 kg, com: [0, 0, -0.3]}
schedule: {duration: 1 s}
"""
CURVE = """\
name: bead
description: A bead on a parabola.
mechanism:
  gravity: [0, -9.81, 0]
  bodies: [{name: bead, type: planar, mass: 1 kg, inertia: [1e-3, 1e-3, 1e-3]}]
  constraints: [{name: wire, type: curve, body: bead, polynomial: [0.1, 0, 0.5]}]
joints: {bead: {initial: {position: [1, 0.6, 0]}}}
schedule: {duration: 1 s}
"""
MASSLESS = """\
name: trolley
description: A helper without mass between two sliders.
mechanism:
  bodies:
    - {name: helper, type: prismatic, axis: [1, 0, 0]}
    - {name: block, type: prismatic, axis: [0, 0, 1], mass: 1 kg}
schedule: {duration: 1 s}
"""


def stage_in(model, *positions):
    return stage_of(*pictured(model, [(np.array(q, dtype=float), 0.0) for q in positions]))


def pins(figure):
    """(k, 2): places of the circles of revolute joints, in the order of drawing."""
    found = [p for p in figure.axes[0].patches if isinstance(p, Circle) and p.radius == PIN]
    return np.array([p.center for p in sorted(found, key=lambda p: p.get_zorder())])


def test_pins_of_all_postures_lie_where_the_model_has_them(rig_of):
    model = rig_of(PENDULUM).plant.model
    positions = [(0.0, 0.0), (0.4, -1.0), (2.0, 0.7)]
    stage = stage_in(model, *positions)
    drawn = pins(figure_of(stage, labels=False))
    # positive about y turns what hangs down towards −x
    expected = [point for q, _ in positions for point in ((0.0, 0.0), (-0.8 * np.sin(q), -0.8 * np.cos(q)))]
    assert drawn == pytest.approx(stage.scale * np.array(expected), abs=1e-9)


def test_a_closed_loop_looks_closed():
    model = load_rig(FOUR_BAR).plant.model
    start = load_rig(FOUR_BAR).plant.start.q
    stage = stage_in(model, start, closed(model, "1, -1.2, -1.5"))
    for k in stage.postures:
        for joint in stage.sketch.joints:
            held = stage.at(k, joint.parent, joint.on.position)
            assert stage.joint_at(k, joint) == pytest.approx(held, abs=1e-6)
    assert len(pins(figure_of(stage, labels=False))) == 2 * 4
    names = {text.get_text() for text in figure_of(stage, labels=True).axes[0].texts}
    assert names == {"x", "y", "crank", "coupler", "rocker", "pin"}


def test_links_end_at_the_joints_that_hold_them_and_free_ends_where_their_inertia_does(rig_of):
    stage = stage_in(load_rig(FOUR_BAR).plant.model, load_rig(FOUR_BAR).plant.start.q)
    assert [body.points.tolist() for body in stage.sketch.bodies] == [
        [[0, 0, 0], [0.2, 0, 0]],
        [[0, 0, 0], [0.5, 0, 0]],
        [[0, 0, 0], [0.4, 0, 0]],
    ]
    upper, lower = stage_in(rig_of(PENDULUM).plant.model, (0, 0)).sketch.bodies
    assert len(upper.points) == 2
    assert np.linalg.norm(lower.points[1]) == pytest.approx(0.3)  # a point mass
    solo = PENDULUM.replace("inertia: [0.1, 0.1, 0.1]", "inertia: [0.03, 0.03, 1e-5]").split("    - {name: lower")[0]
    (rod,) = stage_in(rig_of(solo).plant.model, (0,)).sketch.bodies
    length = np.sqrt(6.0 * (0.03 + 0.03 - 1e-5))  # of the box of the same inertia
    assert np.linalg.norm(rod.points[1]) == pytest.approx(0.5 + 0.5 * length)


def test_a_curve_passes_through_the_point_that_stays_on_it(rig_of):
    rig = rig_of(CURVE)
    stage = stage_in(rig.plant.model, rig.plant.start.q, (-1.0, 0.6, 0.0))
    figure = figure_of(stage, labels=False)
    line = max((line.get_xydata() for line in figure.axes[0].lines), key=len)
    for k in stage.postures:
        bead = stage.at(k, 1, np.zeros(3))
        assert np.linalg.norm(line - bead, axis=1).min() < 0.06
        assert abs(np.interp(bead[0], *line.T) - bead[1]) < 5e-3
    x, y = line.T / stage.scale
    assert y == pytest.approx(0.1 + 0.5 * x**2)
    assert x.min() < -1.0
    assert x.max() > 1.0


def test_bodies_without_mass_are_not_drawn(rig_of):
    stage = stage_in(rig_of(MASSLESS).plant.model, (0.1, 0.2))
    assert [body.name for body in stage.bodies()] == ["block"]


def test_postures_are_those_of_the_run(rig_of):
    rig = rig_of(PENDULUM)
    run = rig.run(0.6)
    (q0, t0), (q1, t1) = run_postures(rig, [0.0, 0.6])
    assert (t0, t1) == pytest.approx((0.0, 0.6))
    assert q0 == pytest.approx([run["upper/position"][0], run["lower/position"][0]])
    assert q1 == pytest.approx([run["upper/position"][-1], run["lower/position"][-1]])


@pytest.mark.parametrize(
    "rig", ["ur5_sim", "mechanisms/arm_on_moving_base", "mechanisms/rolling_wheel", "mechanisms/car_axis"]
)
def test_spatial_mechanisms_fit_their_picture(rig):
    loaded = load_rig(RIGS / f"{rig}.yaml")
    stage = stage_in(loaded.plant.model, loaded.plant.start.q)
    axes = figure_of(stage, labels=True).axes[0]
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    for body in stage.bodies():
        seen = stage.at(0, body.number, body.points)
        assert ((seen > (left, low)) & (seen < (right, high))).all()
    assert not stage.view.planar


# --- symbols ---


def test_hatches_are_on_the_side_of_the_ground():
    line = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    strokes = np.array(hatches(line, side=-1))
    along_first = strokes[strokes[:, 0, 1] == 0.0]
    assert (along_first[:, 1, 1] < 0.0).all()
    assert len(strokes) > 25


def test_a_coil_joins_its_ends():
    line = coil(np.array([1.0, 2.0]), np.array([3.0, -1.0]))
    assert line[0] == pytest.approx([1, 2])
    assert line[-1] == pytest.approx([3, -1])


def test_the_hull_of_a_square_with_points_within():
    points = np.array([[0, 0], [1, 0], [0.5, 0.5], [1, 1], [0, 1], [0.5, 0]])
    assert hull(points).tolist() == [[0, 0], [1, 0], [1, 1], [0, 1]]


# --- the command ---

URDF = """\
<robot name="two">
  <link name="base"><visual><geometry><box size="1 1 0.1"/></geometry></visual></link>
  <link name="arm">
    <visual><origin xyz="0 0 0.5"/><geometry><cylinder radius="0.1" length="1"/></geometry></visual>
    <visual><origin xyz="0 0 1"/><geometry><sphere radius="0.2"/></geometry></visual>
    <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <joint name="hinge" type="KIND"><parent link="base"/><child link="arm"/></joint>
</robot>
"""


@pytest.mark.parametrize(("suffix", "magic"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_a_picture_is_written_the_same_every_time(command, suffix, magic):
    words = ("derive", SLIDER_CRANK, "--picture", "--labels", "--times", "0, 100 ms")
    assert command(*words, f"a.{suffix}") == (
        0,
        f"slider_crank: planar, 4 joints, 2 postures\nwrote    picture a.{suffix}\n",
        [],
    )
    assert command(*words, f"b.{suffix}")[0] == 0
    written = Path(f"a.{suffix}").read_bytes()
    assert written.startswith(magic)
    assert written == Path(f"b.{suffix}").read_bytes()


def test_a_robot_file_with_visuals(command):
    Path("two.urdf").write_text(URDF.replace("KIND", "floating"))
    assert command("derive", "two.urdf", "two.svg", "--picture")[1].startswith("two: spatial, 1 joint, 1 posture")
    Path("two.urdf").write_text(URDF.replace("KIND", "fixed"))
    assert command.refuses("derive", "two.urdf", "two.svg", "--picture") == [
        "two.urdf: nothing moves in this mechanism; there is no picture"
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--picture: needs the file to draw, e.g. mechanism.svg"),
        (["a.gif"], "--picture: cannot draw a plot as '.gif'; use .png, .svg, .pdf"),
        (["a"], "--picture: no suffix; use .png, .svg, .pdf"),
        (["a.svg", "--at", "1,2"], "--at: expected 3 positions, of crank, coupler, rocker, got '1,2'"),
        (["a.svg", "--at", "1,2,x"], "--at: expected 3 positions, of crank, coupler, rocker, got '1,2,x'"),
        (["a.svg", "--times", "1,-2"], "--times: expected times such as '0, 0.5, 800 ms', got '1,-2'"),
        (["a.svg", "--times", "1 m"], "--times: expected times such as '0, 0.5, 800 ms', got '1 m'"),
        (["a.svg", "--times", "1", "--at", "0"], "--times: has no effect beside --at; take one of them out"),
    ],
)
def test_wrong_words(command, words, message):
    assert command.refuses("derive", FOUR_BAR, *words, "--picture") == [message]
    assert list(Path().glob("a*")) == []


def test_a_run_with_real_motors_is_refused(command):
    assert command.refuses("derive", RIGS / "arm_can.yaml", "a.svg", "--picture", "--times", "0") == [
        "--times: would switch real motors on; pass --at, or a rig without drivers"
    ]


def test_a_robot_file_has_no_run(command):
    assert command.refuses("derive", RIGS / "robots" / "ur5.urdf", "a.svg", "--picture", "--times", "0") == [
        "--times: gives times of the run of a rig, and a robot file has none; pass --at"
    ]


def test_a_manipulator_is_drawn_where_it_is_mounted(command):
    platform, arm = RIGS / "mechanisms" / "platform.yaml", RIGS / "two_link.yaml"
    words = ("derive", platform, "a.svg", "--picture")
    assert command(*words, "--mount", arm, "--on", "flange")[1] == (
        "two_link_on_platform: spatial, 4 joints, 1 posture\nwrote    picture a.svg\n"
    )
    assert command.refuses(*words, "--on", "flange") == [
        "--mount: a manipulator is mounted with --mount RIG|ROBOT --on FRAME; give both"
    ]
    assert command.refuses(*words, "--mount", arm, "--on", "flange", "--times", "1") == [
        "--times: has no effect beside --mount; take one of them out"
    ]


def test_a_rig_without_bodies(command):
    Path("none.yaml").write_text("name: none\nmechanism: {bodies: []}\n")
    assert command.refuses("derive", "none.yaml", "a.svg", "--picture") == [
        "none.yaml:2 mechanism.bodies: the list is empty; give it a body"
    ]
