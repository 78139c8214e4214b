"""A beam of rigid elements in a rig: its joints are dofs of an elastic link, as modes are."""

from pathlib import Path

import numpy as np
import pytest

from cosim import load_rig
from tests.kit.given import beside

GIVEN = beside(__file__)

ARM = GIVEN["arm"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def rig(elements=None, *overrides):
    chain = "" if elements is None else f"\n        rigid_elements: {elements}"
    Path("rig.yaml").write_text(ARM.replace("bend_y: 3}", "bend_y: 3}" + chain))
    return load_rig("rig.yaml", overrides)


def test_its_joints_are_dofs_of_the_link():
    model = rig(4).plant.model
    assert model.dof_names == ("hub", *(f"boom.bend_y_{k}" for k in (1, 2, 3, 4)))
    assert list(model.elastic_dofs) == [1, 2, 3, 4]
    assert list(rig().plant.model.elastic_dofs) == [1, 2, 3]


def test_its_deflection_approaches_that_of_the_modes_with_the_square_of_the_elements():
    """The feedforward of both has the elastic links in it."""
    theory = rig().run()
    largest = np.abs(theory["tool.y/deflection"]).max()
    assert 0.003 < largest < 0.05
    errors = []
    for elements in (4, 8):
        found = rig(elements).run()
        errors.append(np.abs(found["tool.y/deflection"] - theory["tool.y/deflection"]).max() / largest)
        assert found["tool.x/deflection"] == pytest.approx(theory["tool.x/deflection"], abs=0.1 * largest**2)
        assert not found["tool.z/deflection"].any()
        assert np.abs(found["hub/position"] - found["hub/reference_position"]).max() < 2e-4
    assert errors[0] < 0.1 and errors[1] < 0.3 * errors[0]


def test_a_deflection_is_along_the_beam_in_its_place():
    """From the poses of the frame and of the link, with the beam along z of the link."""
    text = ARM.replace("xyz: [1, 0, 0]", "xyz: [0.2, 0, 1]").replace("axis: [0, 0, 1]", "axis: [1, 0, 0]")
    text = text.replace("- link: boom\n", "- link: boom\n      origin: {xyz: [0.2, 0, 0], rpy: [0, -90 deg, 0]}\n")
    Path("rig.yaml").write_text(text.replace("bend_y: 3}", "bend_y: 3, bend_z: 1}\n        rigid_elements: 3"))
    model = load_rig("rig.yaml").plant.model
    q = np.array([0.4, *np.linspace(-0.03, 0.05, model.nv - 1)])
    base = model.frame_pose(q, "boom")
    moved = base[:3, :3].T @ (model.frame_pose(q, "tool")[:3, 3] - base[:3, 3]) - [0.2, 0.0, 1.0]
    along = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])  # axes of the beam in the link, by rows
    assert np.asarray(model.equations.deflections(q)["tool"], dtype=float) == pytest.approx(along @ moved, abs=1e-14)
    assert np.abs(moved).min() > 1e-4


def test_input_shaping_finds_almost_the_same_frequency():
    shaped = "controllers.0.trajectory.shaping={type: zvd, modes: [auto]}"
    ends = [rig(elements, shaped).run()["hub/reference_position"] for elements in (None, 6)]
    assert np.abs(ends[0] - ends[1]).max() < 0.05 * np.ptp(ends[0])
    assert np.abs(ends[0] - rig().run()["hub/reference_position"]).max() > 0.2 * np.ptp(ends[0])


@pytest.mark.parametrize(
    ("signal", "bound", "value"),
    [
        ("tool.y/deflection", "2 mm", 2e-3),
        ("tool.x/position", "1 cm", 1e-2),
        ("tool.yaw/position", "0.5 turn", np.pi),
        ("hub/acceleration", "1 turn/s^2", 2 * np.pi),
    ],
)
def test_a_condition_has_the_unit_in_which_its_signal_is_declared(signal, bound, value):
    latch = f"events=[{{do: latch, of: hub, when: {{signal: {signal}, above: {bound}}}}}]"
    (event,) = rig(4, latch).spec.events
    assert (event.signal, event.bound) == (signal, pytest.approx(value))
