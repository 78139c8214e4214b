"""Links without mass in loops, against mechanisms without these links; masses that differ by much."""

import numpy as np
import pytest

from cosim.core.errors import InputErrors
from cosim.rig.rig import Rig
from tests.kit.refusals import raised

BAR = {"mass": 1.0, "com": [0.1, 0.0, 0.0], "inertia": [0.01, 0.02, 0.03]}
DISK = {"mass": 1.0, "inertia": [0.01, 0.01, 0.02]}
TURN = [0.6, 0.0, 0.0]


def rig(bodies, joints, elimination="direct", **more):
    found = {"gravity": [0.3, -9.81, 1.0], "bodies": bodies, "loop_closure": {"elimination": elimination}, **more}
    return {"mechanism": found, "joints": {name: {"initial": values} for name, values in joints.items()}}


def at(x=0.0, turn=(0.0, 0.0, 0.0)):
    return {"xyz": [x, 0.0, 0.0], "rpy": list(turn)}


def rod(between, length):
    points = [[0.2, 0, 0], [0.4, 0, 0]] if between[0] == "crank" else [[0, 0, 0], [0, 0, 0]]
    return {
        "constraints": [{"name": "rod", "type": "distance", "between": between, "points": points, "length": length}]
    }


def coupler(elimination):
    """Between two cranks; without it a distance."""
    crank, rocker = {"name": "crank", **BAR}, {"name": "rocker", "parent": "base", "origin": at(0.5), **BAR}
    pin = {"name": "pin", "parent": "rocker", "child": "link", "origin": at(0.4), "child_origin": at(0.5)}
    joints = {"crank": {"position": 0.3, "velocity": 2.0}, "rocker": {"guess": -1.5}}
    bodies = [crank, {"name": "link", "origin": at(0.2)}, rocker]
    massless = rig(bodies, joints | {"link": {"guess": -0.9}}, elimination, loops=[pin])
    return massless, rig([crank, rocker], joints, elimination, **rod(["crank", "rocker"], 0.5))


def trammel(elimination):
    """Between two sliders: nothing that turns has mass."""
    slide = {"type": "prismatic", "mass": 1.0}
    bodies = [{"name": "x", "axis": [1, 0, 0], **slide}, {"name": "y", "parent": "base", "axis": [0, 1, 0], **slide}]
    pin = {"name": "pin", "parent": "y", "child": "link", "child_origin": at(-0.5)}
    joints = {"x": {"position": 0.3, "velocity": 0.5}, "y": {"guess": 0.4}}
    link = {"name": "link", "parent": "x"}
    massless = rig([bodies[0], link, bodies[1]], joints | {"link": {"guess": -0.9}}, elimination, loops=[pin])
    return massless, rig(bodies, joints, elimination, **rod(["x", "y"], 0.5))


def cross(elimination):
    """Of a universal joint between two shafts at an angle; without it a loop of this type."""
    shafts = [{"name": "in", **DISK}, {"name": "out", "parent": "base", "origin": at(0.0, TURN), **DISK}]
    joints = {"in": {"position": 0.4, "velocity": 5.0}, "out": {"guess": 0.4}}
    pin = {"name": "pin", "parent": "link", "child": "out", "axis": [0, 1, 0]}
    massless = rig([shafts[0], {"name": "link", "parent": "in", "axis": [1, 0, 0]}, shafts[1]], joints, elimination)
    massless["mechanism"]["loops"] = [pin]
    universal = {"name": "pin", "type": "universal", "parent": "in", "child": "out"}
    loops = [{**universal, "axis": [1, 0, 0], "second_axis": [0, 1, 0]}]
    return massless, rig(shafts, joints, elimination, loops=loops)


@pytest.mark.parametrize("elimination", ["direct", "nested"])
@pytest.mark.parametrize("kind", [coupler, trammel, cross])
def test_a_link_without_mass_moves_as_what_it_stands_for(kind, elimination):
    found = []
    for data in kind(elimination):
        plant = Rig.from_dict(data).plant
        model, start = plant.model, plant.start
        values = zip(start.q, start.v, model.forward_dynamics(start.q, start.v, np.zeros(model.nv)), strict=True)
        found.append({name: row for name, row in zip(model.dof_names, values, strict=True) if name != "link"})
    for name, expected in found[1].items():
        np.testing.assert_allclose(found[0][name], expected, rtol=1e-7, atol=1e-7)


def test_a_run_keeps_its_energy():
    massless, other = (Rig.from_dict({**data, "schedule": {"duration": "0.5 s"}}).run() for data in coupler("auto"))
    assert massless is not None and other is not None
    assert massless.summary["energy"]["residual_relative"] < 1e-7
    np.testing.assert_allclose(massless["crank/position"], other["crank/position"], atol=1e-6)


def test_a_parameter_of_a_rig_with_such_a_link():
    """Numbers of the mechanism that are symbols do not hide what is without mass."""
    plant = Rig.from_dict(coupler("auto")[0]).plant
    again = plant.with_numbers(plant.mechanism, plant.actuators)
    assert again.rotors["link"] == plant.full_model.assumed_inertia[1] > 0.0


def three_links():
    """Of a chain of three between the cranks the one in the middle moves freely; of two both follow the cranks."""
    data = coupler("auto")[0]
    more = [{"name": name, "parent": parent, "origin": at(0.3)} for name, parent in (("b", "link"), ("c", "b"))]
    data["mechanism"]["bodies"][2:2] = more
    data["mechanism"]["loops"][0] |= {"child": "c", "child_origin": at(0.3)}
    return data


def released():
    data = coupler("auto")[0]
    return {**data, "events": [{"do": "release", "of": "pin", "at": "1 s"}]}


def beside_the_loop():
    data = coupler("auto")[0]
    data["mechanism"]["bodies"].append({"name": "tip", "parent": "link", "origin": at(0.1)})
    return data


@pytest.mark.parametrize("make", [three_links, released, beside_the_loop])
def test_what_can_move_without_inertia_is_refused(make, said):
    errors = raised(InputErrors, Rig.from_dict, make())
    said(str(errors))


@pytest.mark.parametrize("mass", [1e-9, 1e-6, 1.0, 1e9])
def test_a_planar_inertia_counts_whatever_other_bodies_weigh(mass):
    """Rods at separate joints of the ground: each accelerates as it does alone."""
    bodies = [
        {"name": f"b{k}", "parent": "base", "mass": m, "com": [0.5, 0, 0], "inertia": [0, 0, m / 12]}
        for k, m in enumerate((mass, 1.0 / mass))
    ]
    model = Rig.from_dict({"mechanism": {"gravity": [0, -9.81, 0], "bodies": bodies}}).plant.model
    found = model.forward_dynamics(np.zeros(2), np.zeros(2), np.zeros(2))
    np.testing.assert_allclose(found, -1.5 * 9.81, rtol=1e-12)


def test_an_axis_through_masses_on_it_has_no_inertia():
    """Rounding of a tilted axis is no inertia, however light everything is."""
    for mass in 1e-12, 1.0:
        along = np.array([1.0, 2.0, -0.5])
        body = {"name": "b", "axis": along.tolist(), "mass": mass, "com": along.tolist(), "inertia": [0, 0, 0]}
        error = raised(InputErrors, Rig.from_dict, {"mechanism": {"bodies": [body]}})
        assert "no inertia" in str(error)
