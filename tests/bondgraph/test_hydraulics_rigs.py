"""Hydraulic components in rig files: the sample rigs, and mistakes with their messages."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from cosim import Rig
from tests.bondgraph.graphs import refused_in_file
from tests.kit.messages import Said

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
          item: {{type: {item}}}
        bonds: [item.rod -> joint, item.a -> tank, item.b -> tank]
schedule: {{step: 1 ms, duration: 10 ms}}
"""
CYLINDER = "cylinder, area_a: 20 cm^2, area_b: 10 cm^2, stroke: 0.5 m, dead_volume: 0.1 l"
SPOOL = "spool_valve, diameter: 8 mm, max_opening: 1 mm"
MISTAKES = {
    "a negative area": CYLINDER.replace("20 cm^2", "-20 cm^2"),
    "no stroke": CYLINDER.replace("0.5 m", "0"),
    "air above one half": f"{CYLINDER}, air_content: 1.2",
    "a start beyond the stroke": f"{CYLINDER}, extension: 0.6 m",
    "an accumulator below its precharge": "accumulator, volume: 1 l, precharge: 9 bar, inlet: 1 l/min/bar, pressure: 0",
    "a spool with two lags": f"{SPOOL}, command: request, time_constant: 5 ms, natural_frequency: 300 rad/s",
    "a command that is no expression": f"{SPOOL}, command: 2 mm +",
    "a discharge above one": "orifice, area: 1 mm^2, discharge: 70",
    "an unknown component": "cylindre",
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_one_line(case: str, rig_of: Callable[..., Rig], said: Said) -> None:
    refused_in_file(rig_of, RIG.format(item=MISTAKES[case]), said)


# --- an arm on one pump ---

LEVERS = {  # extension by angle: a² + b², 2 a b, offset and sign of the angle in the lever
    "boom": (7.25, 3.64, 0.9, 1.0),
    "stick": (5.65, 2.76, 0.7, -1.0),
    "bucket": (2.1625, 1.26, 0.6, -1.0),
}


def test_the_pump_of_an_excavator_keeps_its_margin_above_the_highest_load(sample: Callable[..., Rig]) -> None:
    run = sample("drives/excavator", "schedule.tolerance=1e-6").run(4.5)
    for joint, (squares, product, offset, sign) in LEVERS.items():
        length = np.sqrt(squares - product * np.cos(offset + sign * run[f"{joint}/position"]))
        extension = run[f"hydraulics/{joint}_extension"]
        assert extension - extension[0] == pytest.approx(length - length[0], abs=1e-5), joint
    # while the boom lifts, its pressure is the highest, and the pump has the margin more, less its flow over its gain
    lifting = (run.t > 2.0) & (run.t < 3.5)
    pump, load, flow = (run[f"hydraulics/{what}"][lifting] for what in ("pump_pressure", "load_pressure", "pump_flow"))
    assert load == pytest.approx(run["hydraulics/boom_pressure"][lifting], rel=0.02)
    assert pump - load == pytest.approx(20e5 - flow / 4e-9, abs=1e5)
    assert run["boom/position"][-1] > run["boom/position"][0] + 0.3
    assert run.summary["energy"]["residual_relative"] < 1e-6
