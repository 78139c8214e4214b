"""Elastic links in pictures: bent where the model has them, from every source of modes."""

from pathlib import Path

import numpy as np
import pytest

from cosim.apps.derive.mechanism_picture.command import closed, figure_of, pictured
from cosim.apps.derive.mechanism_picture.planar import SLIM
from cosim.apps.derive.mechanism_picture.stage import stage_of
from cosim.mechanics.multibody.assembly import close_loops
from cosim.rig.rig import load_rig
from tests.derive.equations.derivations import RIGS
from tests.multibody.elastic_files.bodies import files_of, nodes_at
from tests.multibody.elastic_files.meshes import brick_mesh

ELASTIC = RIGS / "elastic"
ARM = """\
name: arm
mechanism:
  bodies:
    - {name: arm, joint: hub, axis: [0, 0, 1]}
    - {name: load, type: fixed, parent: arm, origin: {xyz: [1, 0, 0]}, mass: 1 kg, inertia: [1e-3, 1e-3, 1e-3]}
  elastic: [{link: arm, SOURCE}]
  frames: [{name: tip, link: load}]
schedule: {step: 0.02 ms, duration: 1 ms}
"""


def staged(model, q):
    return stage_of(*pictured(model, [(np.asarray(q, dtype=float), 0.0)]))


def path_of(stage):
    """(k, 2): the ends of all pieces, m."""
    return np.concatenate([np.concatenate(stage.pieces(0, bent)) for bent in stage.sketch.bent]) / stage.scale


def arm_of(source):
    Path("arm.yaml").write_text(ARM.replace("SOURCE", source))
    return load_rig("arm.yaml").plant.model


def by_finite_elements():
    position = brick_mesh()[0]
    files_of(brick_mesh(), Path())
    root, tip = (list(nodes_at(position, x)) for x in (0.0, 1.0))
    files = "mass: mass.npz, stiffness: stiffness.npz, nodes: nodes.csv"
    return f"finite_elements: {{{files}, root: {root}, interfaces: {{tip: {tip}}}, modes: 2}}"


def by_table():
    """A cantilever that bends as x², at nodes that do not turn."""
    x = np.linspace(0.0, 1.0, 33)
    bend = np.stack([0.0 * x, x**2, 0.0 * x], axis=-1)[:, None]
    along = np.stack([x, 0.0 * x, 0.0 * x], axis=-1)
    np.savez("rod.npz", positions=along, masses=np.full(33, 0.01), displacements=bend, frequencies=[20.0])
    return "table: {file: rod.npz}"


def by_functions():
    Path("shapes.py").write_text("""\
import numpy as np

from cosim.plugin import ShapeFunctions
from cosim.plugin import params


@params
class Params:
    pass


def load(params):
    bend = lambda x: np.array([[0.0, x * x, 0.0]])
    return ShapeFunctions(1.0, lambda x: 0.3, (("bend", "m"),), bend, [[900.0]])
""")
    return "shapes: {type: shapes.py}"


def by_beam():
    return "beam: {length: 1 m, stiffness: {mass: 1 kg/m, EI: [50, 50]}, modes: {bend_y: 1}}"


@pytest.mark.parametrize("source", [by_beam, by_table, by_functions, by_finite_elements])
def test_a_link_is_drawn_from_its_root_to_what_is_at_its_deflected_tip(command, source):
    model = arm_of(source())
    for turn, deflection in ((0.0, 0.0), (0.4, 0.05)):
        q = np.zeros(model.nq)
        q[:2] = turn, deflection
        stage = staged(model, q)
        assert stage.view.planar
        path = path_of(stage)
        tip = model.frame_pose(q, "tip")[:2, 3]
        assert np.linalg.norm(path, axis=1).min() < 2e-3
        assert np.linalg.norm(path - tip, axis=1).min() < 2e-3
        across = path @ [-np.sin(turn), np.cos(turn)]
        assert np.abs(across).max() == pytest.approx(deflection, abs=3e-3)
        chord = path @ [np.cos(turn), np.sin(turn)] * deflection
        assert np.abs(across - chord).max() >= 0.15 * deflection  # it is bent, not turned


def test_a_table_is_bent_as_its_nodes_are(command):
    model = arm_of(by_table())
    path = path_of(staged(model, [0.0, 0.04]))
    assert path[:, 1] == pytest.approx(0.04 * path[:, 0] ** 2, abs=2e-4)


def test_pieces_of_a_link_are_drawn_slim_and_as_one(command):
    model = arm_of(by_beam())
    figure = figure_of(staged(model, [0.0, 0.05]), labels=False)
    lines = [line for line in figure.axes[0].lines if line.get_linewidth() == pytest.approx(72.0 * SLIM)]
    assert len(lines) == 8
    assert len({line.get_zorder() for line in lines}) == 1


def test_joints_and_loops_are_where_the_deflection_has_them():
    model = load_rig(ELASTIC / "slider_crank.yaml").plant.model
    q = np.zeros(model.nq)
    q[:6] = 0.7, -0.4, 0.01, 0.005, 0.0, 0.002
    held = np.array([name != "slider" and name != "rod" for name in model.dof_names])
    q = close_loops(model, q, held)
    stage = staged(model, q)
    for joint in stage.sketch.joints:
        if joint.placed and joint.kind != "prismatic":
            at = stage.at(0, joint.parent, joint.on.position)
            assert stage.joint_at(0, joint) == pytest.approx(at, abs=1e-6)
    pin = next(stage.joint_at(0, joint) for joint in stage.sketch.joints if joint.name == "pin") / stage.scale
    assert np.linalg.norm(path_of(stage) - pin, axis=1).min() < 1e-3


def test_a_clamped_ruler_is_a_picture(command, said):
    said(command("derive", ELASTIC / "cantilever.yaml", "ruler.svg", "--picture", "--labels")[1])
    assert "@" not in Path("ruler.svg").read_text().partition("</metadata>")[2]


def test_a_plate_that_bends_out_of_its_plane_is_seen_from_above(command):
    x, y = (part.ravel() for part in np.meshgrid(np.linspace(0.0, 1.0, 5), np.linspace(-0.3, 0.3, 3), indexing="ij"))
    bend = np.stack([0.0 * x, 0.0 * x, x**2], axis=-1)[:, None]
    positions = np.stack([x, y, 0.0 * x], axis=-1)
    np.savez("plate.npz", positions=positions, masses=np.full(15, 0.02), displacements=bend, stiffness=[[50.0]])
    stage = staged(arm_of("table: {file: plate.npz}"), [0.0, 0.1])
    assert not stage.view.planar
    assert len(stage.sketch.bent[0].pieces) == 22


def test_positions_of_modes_may_be_left_out():
    model = load_rig(ELASTIC / "two_link_arm.yaml").plant.model
    q = closed(model, "0.4, -0.6")
    assert dict(zip(model.coordinate_names, q, strict=True)) | {"shoulder": 0.4, "elbow": -0.6} == dict(
        zip(model.coordinate_names, q, strict=True)
    )
    assert np.count_nonzero(q) == 2


def test_another_number_of_positions_is_refused(command, said):
    said(command.refuses("derive", ELASTIC / "cantilever.yaml", "a.svg", "--picture", "--at", "1,2"))
