"""Hydraulic components in rig files: the sample rigs, and mistakes with their messages."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cosim import Rig, load_rig
from cosim.errors import InputError

SUPPLY, AREA, FORCE, OPENING = 1e6, 0.0201, 15e3, 1.2566e-4  # SI units, as in the rig files
SPEED = 0.7 * OPENING * math.sqrt((SUPPLY - FORCE / AREA) / 900.0) / AREA
PRESSURE_B = 0.5 * (SUPPLY - FORCE / AREA)  # each edge takes half of what is left

Sample = Callable[..., Rig]


def test_the_rigid_fluid_hides_the_oscillation_that_the_full_model_shows(sample: Sample) -> None:
    """Both settle to the same speed and pressures; at the start the supply rings with the fluid's mass."""
    runs = {name: sample(f"drives/hydraulic_{name}").run() for name in ("simple", "full")}
    for run in runs.values():
        assert run["slide/velocity"][-1] == pytest.approx(SPEED, rel=1e-3)
        assert run["slide/pressure_a"][-1] == pytest.approx(PRESSURE_B + FORCE / AREA, rel=1e-3)
        assert run["slide/pressure_b"][-1] == pytest.approx(PRESSURE_B, rel=2e-3)
    simple, full = (run["slide/pressure_a"] for run in runs.values())
    assert (np.diff(simple) <= 0.0).all()  # it falls from the supply as the flow rises
    assert full[0] == pytest.approx(FORCE / AREA, rel=1e-3)
    assert full.max() == pytest.approx(1.035e6, rel=5e-3)  # above the supply
    rising = np.flatnonzero(np.diff(np.sign(np.diff(full[:50]))) < 0) + 1  # peaks within 10 ms
    period = np.diff(runs["full"].t[rising]).mean()
    fluid = math.sqrt(1750e6 / 900.0) / 0.5  # √(c / m) = √(E / ρ) / S
    assert 2.0 * math.pi / period == pytest.approx(fluid, rel=0.05)
    assert runs["full"]["slide/piston"] == pytest.approx(runs["full"]["slide/position"], abs=1e-9)


def test_runs_are_deterministic(sample: Sample) -> None:
    first, second = (sample("drives/hydraulic_full").run("20 ms") for _ in range(2))
    assert (first["slide/pressure_a"] == second["slide/pressure_a"]).all()


def test_rollouts_are_single_runs_to_the_bit(sample: Sample) -> None:
    masses = [5000.0, 6000.0, 7000.0]
    rollouts = sample("drives/hydraulic_full").rollouts(
        parameters={"mechanism.load.mass": masses}, duration="10 ms", keep="all"
    )
    for mass, pressure in zip(masses, rollouts.samples["slide/pressure_a"], strict=True):
        single = sample("drives/hydraulic_full", f"mechanism.bodies[0].mass={mass}").run("10 ms")
        assert (pressure == single["slide/pressure_a"]).all()


def test_a_cylinder_lifts_a_boom(sample: Sample) -> None:
    run = sample("drives/hydraulic_boom").run()
    error = run["piston/position"] - run["piston/reference_position"]
    assert np.abs(error).max() < 0.02
    assert run["piston/extension"] == pytest.approx(run["piston/position"] - 1.1, abs=1e-6)
    # at rest the pressures carry the weight of boom and load, at the lever of the cylinder
    boom, swing = run["boom/position"][0], run["cylinder/position"][0]
    torque = 9.81 * (300.0 * 1.5 + 500.0 * 3.0) * math.cos(boom)
    lever = 1.2 * math.sin(swing - boom)
    force = 50.3e-4 * run["piston/pressure_a"] - 34.4e-4 * run["piston/pressure_b"]
    assert force[-1] == pytest.approx(torque / lever, rel=0.1)
    balance = run.summary["energy"]
    assert balance is not None and abs(balance["residual_relative"]) < 1e-6


RIG = """
mechanism:
  bodies:
    - {{name: load, joint: slide, type: prismatic, mass: 10 kg}}
joints:
  slide:
    actuator:
      type: bond_graph
      graph:
        elements: {{tank: {{type: Se, domain: hydraulic, effort: 0}}}}
        components:
          item: {item}
        bonds: [item.rod -> joint, item.a -> tank, item.b -> tank]
schedule: {{step: 1 ms, duration: 10 ms}}
"""
CYLINDER = "type: cylinder, area_a: 20 cm^2, area_b: 10 cm^2, stroke: 0.5 m, dead_volume: 0.1 l"
MISTAKES = {
    "a negative area": (
        "{type: cylinder, area_a: -20 cm^2, area_b: 10 cm^2, stroke: 0.5 m, dead_volume: 0.1 l}",
        "area_a: must be above 0 m^2, is -0.002 m^2",
    ),
    "no stroke": (
        "{type: cylinder, area_a: 20 cm^2, area_b: 10 cm^2, stroke: 0, dead_volume: 0.1 l}",
        "stroke: must be above 0 m, is 0 m",
    ),
    "air above one half": (f"{{{CYLINDER}, air_content: 1.2}}", "air_content: must be at most 0.5, is 1.2"),
    "a start beyond the stroke": (
        f"{{{CYLINDER}, extension: 0.6 m}}",
        "extension: the piston starts beyond its stroke; lower it, or raise 'stroke'",
    ),
    "an accumulator below its precharge": (
        "{type: accumulator, volume: 1 l, precharge: 50 bar, inlet: 1 l/min/bar, pressure: 20 bar}",
        "pressure: it is below the precharge; raise it, or lower 'precharge'",
    ),
    "a spool with two lags": (
        "{type: spool_valve, diameter: 8 mm, max_opening: 1 mm, command: request, time_constant: 5 ms,"
        " natural_frequency: 300 rad/s}",
        "time_constant: a spool has a 'time_constant' or a 'natural_frequency', not both; take one out",
    ),
    "a command that is no expression": (
        "{type: spool_valve, diameter: 8 mm, max_opening: 1 mm, command: 2 mm}",
        "command: '2 mm' is no expression, such as 0.2 * tanh(flow / 0.01)",
    ),
    "a discharge above one": (
        "{type: orifice, area: 1 mm^2, discharge: 70}",
        "discharge: must be at most 1, is 70",
    ),
    "an unknown component": (
        "{type: cylindre}",
        "type: unknown component 'cylindre'; did you mean 'cylinder'?",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_one_line(case: str, tmp_path: Path) -> None:
    item, message = MISTAKES[case]
    file = tmp_path / "rig.yaml"
    file.write_text(RIG.format(item=item))
    with pytest.raises(InputError) as raised:
        load_rig(file)
    line = str(raised.value).splitlines()[0]
    assert line == f"{file}:12 joints.slide.actuator.graph.components.item.{message}"
