"""Loops that are exact only within the accuracy of a drawing: axes off by a little, against the aligned mechanism."""

import numpy as np
import pytest

from cosim.core.errors import InputError
from cosim.rig.rig import Rig
from tests.kit.refusals import raised

TILTS = 1e-8, 1e-6, 1e-4, 1e-3
FIGURES = {"mass": 1.0, "com": [0.1, 0.0, 0.0], "inertia": [0.01, 0.02, 0.03]}


def at(x=0.0, roll=0.0, pitch=0.0):
    return {"xyz": [x, 0.0, 0.0], "rpy": [roll, pitch, 0.0]}


def mechanism(bodies, loops, joints, constraints=()):
    bodies = [{**FIGURES, **body} for body in bodies]
    found = {"gravity": [0.0, -9.81, 1.0], "bodies": bodies, "loops": loops, "constraints": list(constraints)}
    initial = {name: {"initial": values} for name, values in joints.items()}
    return {"mechanism": found, "joints": initial, "schedule": {"step": "1 ms", "duration": "0.1 s"}}


def four_bar(tilt, size=1.0):
    bodies = [
        {"name": "crank", "origin": at(0.0, tilt)},
        {"name": "coupler", "origin": at(0.2 * size, 0.0, -tilt)},
        {"name": "rocker", "parent": "base", "origin": at(0.5 * size)},
    ]
    pin = {
        "name": "pin",
        "parent": "rocker",
        "child": "coupler",
        "origin": at(0.4 * size),
        "child_origin": at(0.5 * size),
    }
    joints = {"crank": {"position": 0.3, "velocity": 8.0}, "coupler": {"guess": -0.9}, "rocker": {"guess": -1.5}}
    return mechanism(bodies, [pin], joints)


def four_bar_tilted_at_the_cut(tilt):
    rig = four_bar(0.0)
    rig["mechanism"]["loops"][0]["origin"] = at(0.4, tilt)
    return rig


def slider_crank(tilt):
    bodies = [
        {"name": "crank"},
        {"name": "rod", "origin": at(0.2)},
        {"name": "piston", "parent": "base", "type": "prismatic", "axis": [1, 0, 0], "origin": at(0.5, 0.0, tilt)},
    ]
    pin = {"name": "pin", "parent": "piston", "child": "rod", "child_origin": at(0.5)}
    joints = {"crank": {"position": 0.3, "velocity": 8.0}, "rod": {"guess": -0.4}, "piston": {"guess": 0.15}}
    return mechanism(bodies, [pin], joints)


def geared_five_bar(tilt):
    bodies = [
        {"name": "left", "origin": at(0.0, tilt)},
        {"name": "upper", "origin": at(0.2)},
        {"name": "right", "parent": "base", "origin": at(0.3)},
        {"name": "lower", "origin": at(0.2, 0.0, tilt)},
    ]
    pin = {"name": "pin", "parent": "upper", "child": "lower", "origin": at(0.3), "child_origin": at(0.3)}
    gear = {"name": "gear", "type": "gear", "joints": ["left", "right"], "ratio": -1, "offset": np.pi}
    joints = {"left": {"position": 1.8, "velocity": 3.0}, "upper": {"guess": -0.9}, "right": {"guess": 1.3}}
    return mechanism(bodies, [pin], joints | {"lower": {"guess": 0.9}}, [gear])


def four_bar_on_an_arm(tilt):
    rig = four_bar(tilt)
    bodies = rig["mechanism"]["bodies"]
    for body in bodies[0], bodies[2]:
        body["parent"] = "arm"
    bodies.insert(0, {"name": "arm", "axis": [1, 0, 0], **FIGURES})
    rig["joints"]["arm"] = {"initial": {"velocity": 1.0}}
    return rig


def bennett(tilt, a=0.3):
    """Twists α, β and lengths a, b with a sin β = b sin α; the tilt is added to one twist. Bennett (1903)."""
    alpha, beta = np.deg2rad(40.0), np.deg2rad(75.0)
    b = a * np.sin(beta) / np.sin(alpha)
    first = 1.0
    second = 2.0 * np.arctan(np.sin((beta + alpha) / 2) / np.sin((beta - alpha) / 2) / np.tan(first / 2))
    bodies = [{"name": "j1"}, {"name": "j2", "origin": at(a, alpha + tilt)}, {"name": "j3", "origin": at(b, beta)}]
    ground = {"xyz": [-b, 0.0, 0.0], "rpy": [-beta, 0.0, 0.0]}
    cut = {"name": "pin", "parent": "base", "child": "j3", "origin": ground, "child_origin": at(a, alpha)}
    joints = {"j1": {"position": first, "velocity": 3.0}, "j2": {"guess": float(second)}, "j3": {"guess": -first}}
    return mechanism(bodies, [cut], joints)


def spherical(arcs, radius, guess):
    """Four hinges whose axes meet at the centre of a sphere, frames on the sphere; of offset · 0.2 m the second axis
    misses the centre."""
    first, second, third, ground = np.deg2rad(arcs)

    def to(arc, away=0.0):
        return {"xyz": [away, -radius * np.sin(arc), radius * (np.cos(arc) - 1.0)], "rpy": [arc, 0.0, 0.0]}

    def made(offset):
        bodies = [
            {"name": "j1"},
            {"name": "j2", "origin": to(first, 0.2 * offset)},
            {"name": "j3", "origin": to(second)},
        ]
        cut = {"name": "pin", "parent": "base", "child": "j3", "origin": to(-ground), "child_origin": to(third)}
        joints = {"j1": {"position": 0.7, "velocity": 2.0}, "j2": {"guess": guess[0]}, "j3": {"guess": guess[1]}}
        return mechanism(bodies, [cut], joints)

    return made


def double_cardan(offset):
    """Two universal joints of two hinges each between parallel shafts; the axes of a cross miss each other."""
    bend, length = np.deg2rad(30.0), 0.4
    bodies = [
        {"name": "j1"},
        {"name": "a", "axis": [1, 0, 0]},
        {"name": "b", "axis": [0, 1, 0], "origin": {"xyz": [0.0, 0.0, 0.2 * offset]}},
        {"name": "c", "axis": [0, 1, 0], "origin": {"xyz": [0.0, 0.0, length]}},
        {"name": "d", "axis": [1, 0, 0]},
    ]
    end = {"xyz": [0.0, -length * np.sin(bend), length * np.cos(bend)]}
    cut = {"name": "pin", "parent": "base", "child": "d", "origin": end}
    joints = {"j1": {"position": 0.0, "velocity": 2.0}, "a": {"guess": bend}, "d": {"guess": -bend}}
    return mechanism(bodies, [cut], joints)


spherical_four_bar = spherical((40.0, 70.0, 75.0, 85.0), 0.2, (1.28, 0.97))
spherical_four_bar.__name__ = "spherical_four_bar"
hookes_joint = spherical((90.0, 90.0, 90.0, 150.0), 0.0, (-1.21, 1.18))  # all frames at the centre
hookes_joint.__name__ = "hookes_joint"
MEETING = spherical_four_bar, hookes_joint, double_cardan
KINDS = *MEETING, four_bar, four_bar_tilted_at_the_cut, slider_crank, geared_five_bar, four_bar_on_an_arm, bennett


def started(kind, tilt, elimination="direct"):
    rig = kind(tilt)
    rig["mechanism"]["loop_closure"] = {"elimination": elimination}
    return Rig.from_dict(rig)


def motion(rig):
    """(coordinates, velocities, accelerations, efforts of all reactions) at the start."""
    model, start = rig.plant.model, rig.plant.start
    effort = np.zeros(model.nv)
    G = np.asarray(model.equations.constraint_jacobian(start.q, 0.0))
    reactions = model.reactions(start.q, start.v, effort)
    return start.q, start.v, model.forward_dynamics(start.q, start.v, effort), G.T @ reactions


@pytest.mark.parametrize("elimination", ["direct", "nested"])
@pytest.mark.parametrize("kind", KINDS)
def test_small_tilts_change_little(kind, elimination):
    aligned = started(kind, 0.0, elimination)
    assert not aligned.plant.start.inexact and not aligned.plant.misaligned
    expected = motion(aligned)
    for tilt in TILTS:
        tilted = started(kind, tilt, elimination)
        assert len(tilted.plant.start.redundant) == len(aligned.plant.start.redundant)
        assert tilted.plant.start.immobile is None
        for value, exact in zip(motion(tilted), expected, strict=True):
            np.testing.assert_allclose(value, exact, rtol=0, atol=30 * tilt * max(1.0, np.abs(exact).max()))


@pytest.mark.parametrize("kind", KINDS)
def test_tilted_loops_keep_their_energy_and_their_residual(kind):
    run = started(kind, 1e-3).run()
    assert run is not None
    assert run.summary["energy"]["residual_relative"] < 1e-6
    assert 0.0 < run["pin/violation"].max() < 3e-3


@pytest.mark.parametrize("kind", KINDS)
def test_large_tilts_are_no_errors_of_drawings(kind):
    """The loops close only by chance, or nowhere."""
    assert "cannot close" in raised(InputError, started, kind, 0.05).what


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_off_is_named(kind, said):
    (line,) = started(kind, 1e-4).plant.misaligned
    said(line)
    assert any(line in found for found in started(kind, 1e-4).warnings)


def test_scale_and_eccentricity_do_not_matter():
    """A short crank, all of it a thousandth in size, is no error of a drawing."""
    for size in 1.0, 1e-3:
        rig = four_bar(0.0)
        for body, x in zip(rig["mechanism"]["bodies"], (0.0, 1e-3, 0.5), strict=True):
            body["origin"] = at(size * x)
        pin = rig["mechanism"]["loops"][0]
        pin |= {"origin": at(0.4 * size), "child_origin": at(0.5 * size)}
        plant = Rig.from_dict(rig).plant
        assert len(plant.start.redundant) == 3 and not plant.start.inexact


@pytest.mark.parametrize("error", [1e-3, 1e-2])
def test_gears_that_contradict_each_other_block(error):
    """Their residual is small near the start and grows with the motion."""
    gears = [{"name": n, "type": "gear", "joints": ["a", "b"], "ratio": r} for n, r in (("g", 1.0), ("h", 1.0 + error))]
    rig = mechanism([{"name": "a"}, {"name": "b", "parent": "base"}], [], {}, gears)
    plant = Rig.from_dict(rig).plant
    assert not plant.start.inexact and plant.start.immobile is not None


def test_a_bar_that_is_off_by_a_little_stays_a_mistake():
    """A structure does not move: what does not fit cannot be the error of a drawing."""
    rig = four_bar(0.0)
    del rig["joints"]["crank"]["initial"]["velocity"]
    rod = {"name": "rod", "type": "distance", "between": ["base", "rocker"], "points": [[0, 0, 0], [0.4, 0, 0]]}
    free = Rig.from_dict(rig).plant.start.q[2]
    length = float(np.hypot(0.5 + 0.4 * np.cos(free), 0.4 * np.sin(free)))
    for off, fits in (0.0, True), (1e-4, False):
        rig["mechanism"]["constraints"] = [{**rod, "length": length + off}]
        if fits:
            assert Rig.from_dict(rig).plant.start.immobile is not None
        else:
            assert "cannot close" in raised(InputError, Rig.from_dict, rig).what


@pytest.mark.parametrize("kind", MEETING)
@pytest.mark.parametrize("offset", [1e-6, 1e-3])
def test_axes_that_miss_each_other_are_named_with_their_distance(kind, offset):
    (line,) = started(kind, offset).plant.misaligned
    names, distance = ("'a' and 'b'" if kind is double_cardan else "'j1' and 'j2'"), 0.2 * offset
    assert f"the axes of {names} are {distance:.2g} m apart" in line


@pytest.mark.parametrize("length", [3e-4, 0.3])
def test_a_linkage_of_short_links_is_none_whose_axes_meet(length):
    """A Bennett linkage and a planar one keep all their rows that hold, however far their bodies extend."""
    for rig in (bennett(0.0, length), four_bar(0.0, length / 0.3), four_bar(1e-4, length / 0.3)):
        plant = Rig.from_dict(rig).plant
        tilted = bool(plant.start.inexact)
        assert len(plant.start.redundant) == 3 and plant.start.immobile is None
        assert not any("apart" in line for line in plant.misaligned) and len(plant.misaligned) == tilted
    assert tilted


@pytest.mark.parametrize("size", [10.0, 100.0])
def test_a_large_mechanism_is_not_stopped_for_the_residual_of_its_drawing(size):
    """Which is more than the guard's 1e-2 m, as levers are long, but within the tolerance per m of lever."""
    run = Rig.from_dict(four_bar(1e-3, size)).run()
    assert not run.fault and not any("violated" in line for line in run.warnings)
    assert (run["pin/violation"].max() > 1e-2) == (size > 30.0)
