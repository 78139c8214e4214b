"""`cosim derive --picture`: what is drawn lies where the model has it, and errors in one line."""

import shlex
from pathlib import Path

import numpy as np
import pytest
from matplotlib.patches import Circle

from cosim.apps.derive.mechanism_picture.command import closed, figure_of, pictured, run_postures
from cosim.apps.derive.mechanism_picture.pen import PIN, coil, hatches, hull
from cosim.apps.derive.mechanism_picture.stage import stage_of
from cosim.rig.rig import load_rig
from tests.derive.equations.derivations import OWN, RIGS
from tests.kit.given import beside

GIVEN = beside(__file__)

FOUR_BAR = RIGS / "mechanisms" / "four_bar.yaml"
SLIDER_CRANK = RIGS / "mechanisms" / "slider_crank.yaml"


def stage_in(model, *positions):
    return stage_of(*pictured(model, [(np.array(q, dtype=float), 0.0) for q in positions]))


def pins(figure):
    """(k, 2): places of the circles of revolute joints, in the order of drawing."""
    found = [p for p in figure.axes[0].patches if isinstance(p, Circle) and p.radius == PIN]
    return np.array([p.center for p in sorted(found, key=lambda p: p.get_zorder())])


def test_pins_of_all_postures_lie_where_the_model_has_them():
    model = load_rig(OWN / "pendulum.yaml").plant.model
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
    upper, lower = stage_in(load_rig(OWN / "pendulum.yaml").plant.model, (0, 0)).sketch.bodies
    assert len(upper.points) == 2
    assert np.linalg.norm(lower.points[1]) == pytest.approx(0.3)  # a point mass
    alone, _ = (OWN / "pendulum.yaml").read_text().split("    - {name: lower")
    solo = alone.replace("inertia: [0.1, 0.1, 0.1]", "inertia: [0.03, 0.03, 1e-5]")
    (rod,) = stage_in(rig_of(solo).plant.model, (0,)).sketch.bodies
    length = np.sqrt(6.0 * (0.03 + 0.03 - 1e-5))  # of the box of the same inertia
    assert np.linalg.norm(rod.points[1]) == pytest.approx(0.5 + 0.5 * length)


def test_a_curve_passes_through_the_point_that_stays_on_it():
    rig = load_rig(OWN / "curve.yaml")
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


def test_bodies_without_mass_are_not_drawn():
    stage = stage_in(load_rig(OWN / "massless.yaml").plant.model, (0.1, 0.2))
    assert [body.name for body in stage.bodies()] == ["block"]


def test_postures_are_those_of_the_run():
    rig = load_rig(OWN / "pendulum.yaml")
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


URDF = GIVEN["urdf"]


def test_a_picture_is_written_the_same_every_time(command, said):
    words = ("derive", SLIDER_CRANK, "--picture", "--labels", "--times", "0, 100 ms")
    out = command.prints(*words, "a.svg")
    said(out)
    assert command(*words, "b.svg")[0] == 0
    assert Path("a.svg").read_bytes() == Path("b.svg").read_bytes()


def test_a_robot_file_with_visuals(command):
    Path("two.urdf").write_text(URDF.replace("KIND", "floating"))
    assert command("derive", "two.urdf", "two.svg", "--picture")[1].startswith("two: spatial, 1 joint, 1 posture")


def test_a_manipulator_is_drawn_where_it_is_mounted(command, said):
    platform, arm = RIGS / "mechanisms" / "platform.yaml", RIGS / "two_link.yaml"
    said(command("derive", platform, "a.svg", "--picture", "--mount", arm, "--on", "flange")[1])


WRONG = GIVEN["wrong"]


@pytest.mark.parametrize("words", WRONG)
def test_wrong_words(command, said, words):
    Path("rigs").symlink_to(RIGS / "mechanisms")
    Path("fixed.urdf").write_text(URDF.replace("KIND", "fixed"))
    Path("none.yaml").write_text("name: none\nmechanism: {bodies: []}\n")
    rig, *options = shlex.split(words)
    file = rig if Path(rig).exists() else f"rigs/{rig}"
    said(command.refuses("derive", file, *options, "--picture"))
    assert list(Path().glob("a*")) == []
