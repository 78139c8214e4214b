"""`mechanism.formulation`: a run with another formulation of the equations of motion."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import orjson
import pytest

from cosim import RunError, compare
from cosim.mechanics.formulations import dependent_coordinates
from cosim.mechanics.formulations.cartesian import Cartesian
from tests.kit.refusals import raised, refusal
from tests.kit.samples import sample

__all__ = ["sample"]

CARTESIAN = "mechanism.formulation=cartesian"


@pytest.mark.parametrize(
    ("name", "interpret"),
    [
        ("ur5_sim", False),
        ("mechanisms/four_bar", False),
        ("mechanisms/floating_chain", True),
        ("mechanisms/car_axis", False),
        ("pendulum_chain", True),
    ],
)
def test_a_run_is_the_same_in_another_formulation(sample, name, interpret):
    duration = 0.01 if interpret else 0.2
    expected, rig = sample(name, interpret=interpret).run(duration), sample(name, CARTESIAN, interpret=interpret)
    assert isinstance(rig.plant.other_formulation, Cartesian)
    run = rig.run(duration)
    assert run.summary["outcome"] == "finished"
    for joint in rig.plant.model.dof_names:
        found, wanted = (each[f"{joint}/velocity"] for each in (run, expected))
        assert found == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("formulation", ["cartesian", "kane", "lagrange"])
def test_rotors_of_several_joints_are_in_a_run_with_another_formulation(sample, formulation):
    expected = sample("mechanisms/coupled_wrist").run(0.2)
    run = sample("mechanisms/coupled_wrist", f"mechanism.formulation={formulation}").run(0.2)
    for joint in ("joint_5", "joint_6"):
        assert run[f"{joint}/velocity"] == pytest.approx(expected[f"{joint}/velocity"], abs=1e-9)


def test_the_accelerations_are_those_of_the_formulation(sample, monkeypatch):
    monkeypatch.setattr(Cartesian, "forward_dynamics", lambda self, q, v, tau, t=0.0: np.full(2, 3.0))
    run = sample("mechanisms/double_pendulum", CARTESIAN, interpret=True).run(0.01)
    assert run["hinge_1/velocity"][-1] == pytest.approx(3.0 * run.t[-1])


def test_reactions_of_loops_are_signals_as_before(sample):
    expected, run = (sample("mechanisms/four_bar", *given).run(0.1) for given in ((), (CARTESIAN,)))
    names = [name for name in expected.signals if "force" in name]
    assert names
    for name in names:
        assert run[name] == pytest.approx(expected[name], abs=1e-7)


def test_a_run_stops_where_the_dependent_coordinates_are_singular(sample, monkeypatch):
    """The rocker turns back; a wide limit, as no step meets that position exactly."""
    monkeypatch.setattr(dependent_coordinates, "SINGULAR", 0.05)
    monkeypatch.setattr(dependent_coordinates.DependentCoordinates, "choice", [0, 1])
    text = str(raised(RunError, sample("mechanisms/four_bar", "mechanism.formulation=dependent_coordinates").run, 2.0))
    assert "stopped at tick" in text and "joint 'crank' is not finite" in text
    assert text.endswith(
        "; 'pin/force_y' depends on the other rows of the constraints in the coordinates that 'dependent_coordinates'"
        " chose; use mechanism.formulation: separate_bodies"
    )


@pytest.mark.parametrize(
    ("name", "overrides"),
    [
        ("two_link", ["mechanism.formulation=carthesian"]),
        ("mechanisms/slider_crank", [CARTESIAN]),
        ("mechanisms/release", [CARTESIAN]),
        ("ur5_sim", [CARTESIAN, "schedule.integrator=multirate"]),
    ],
    ids=str,
)
def test_what_is_wrong_is_one_line(sample, said, name, overrides):
    said(refusal(sample, name, *overrides))


@pytest.mark.parametrize("name", ["gauss", "lagrange"])
def test_formulations_that_take_inertias_as_constants(sample, said, name):
    rig = sample("mechanisms/double_pendulum", f"mechanism.formulation={name}")
    said(refusal(rig.gradient, "iae", "mechanism.upper.mass", duration=0.01))
    assert rig.gradient("iae", "mechanism.hinge_1.damping", duration=0.01)["mechanism.hinge_1.damping"] == 0.0


def test_what_names_the_formulation_that_ran(command):
    lagrange = "--set", "mechanism.formulation=lagrange"
    code, out, _ = command("run", "rig.yaml", *lagrange, "--json", "a.json", "--record", "a.mcap")
    assert code == 0
    assert "engine   plant, controller hold, loop: compiled; equations of motion: lagrange" in out.splitlines()
    assert orjson.loads(Path("a.json").read_bytes())["formulation"] == "lagrange"
    assert "  equations of motion: lagrange" in map(str.rstrip, checked(command, *lagrange))
    code, out, _ = command("run", "rig.yaml", "--json", "b.json", "--record", "b.mcap")
    assert "engine   plant, controller hold, loop: compiled" in out.splitlines()
    assert orjson.loads(Path("b.json").read_bytes())["formulation"] == "separate_bodies"
    assert not any("equations of motion" in line for line in checked(command))
    assert compare("a.mcap", "b.mcap").changed["formulation"] == ("lagrange", "separate_bodies")


def checked(command, *words):
    code, out, _ = command("check", "rig.yaml", *words)
    assert code == 0
    return [line.removeprefix("  ") for line in out.splitlines()]
