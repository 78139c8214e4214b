"""The page of the signals has every signal that drives and their supplies record, and no other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from cosim import Rig, load_rig
from cosim.mechanics.bondgraph.graph import DcSource, ElectricMachine
from cosim.mechanics.bondgraph.power_account import LOSSES
from cosim.plugins.actuators.drive import Params
from cosim.rig.run.run_metadata import channels_of
from cosim.simulation.tick.signals import JOINT_SIGNALS
from tests.kit.samples import FOLDER

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "signals.md"
SECTION = PAGE.read_text("utf-8").split("## Signals of drives")[1].split("\n## ")[0]
ROWS = [name for line in re.findall(r"^\| (`.*?) \|", SECTION, re.MULTILINE) for name in re.findall(r"`([^`]+)`", line)]
LOSS = f"(?:{'|'.join(LOSSES)})"
FURTHER = {*JOINT_SIGNALS, "motor_torque", "gear_torque", "friction_effort", "step_error"}  # rows of the page above
SYNCHRONOUS = {"resistance": 0.5, "inductance_d": 1e-3, "inductance_q": 1e-3}
THERMAL = {"winding_capacity": 60, "housing_capacity": 800, "winding_to_housing": 0.5, "housing_to_ambient": 1.2,
           "winding_limit": 110}  # fmt: skip
MOTORS: dict[str, dict[str, Any]] = {
    "dc_machine": {"resistance": 0.5, "inductance": 1e-3, "torque_constant": 0.05, "inertia": 1e-4, "thermal": THERMAL},
    "pmsm": {**SYNCHRONOUS, "pole_pairs": 4, "flux": 0.05, "inertia": 1e-4, "iron": {"hysteresis": 0.01, "eddy": 1e-5}},
    "linear_motor": {**SYNCHRONOUS, "pole_pitch": 0.06, "force_constant": 40},
    "bldc": {"pole_pairs": 2, "resistance": 0.8, "inductance": 2e-3, "back_emf": 0.3, "inertia": 4e-3},
    "stepper": {"teeth": 50, "resistance": 0.8, "inductance": 3e-3, "torque_constant": 0.3, "inertia": 1e-4},
    "induction_machine": {
        "pole_pairs": 2, "stator_resistance": 1.2, "rotor_resistance": 1.0, "stator_leakage": 5e-3,
        "rotor_leakage": 5e-3, "magnetising_inductance": 0.15, "inertia": 0.01, "flux": 0.8,
    },
}  # fmt: skip
SOURCES: dict[str, dict[str, Any]] = {
    "diode_bridge": {"voltage": 300, "resistance": 1},
    "active_front_end": {"voltage": 300, "current_limit": 30},
    "battery": {"capacity": "2 A*h", "charges": [0, 1], "voltages": [290, 310], "resistance": 0.3},
}
LOOPS = {"mode": "position", "encoder": {"cpr": 4096}, "velocity": {"gain": 1, "rate": 4e3}, "position": {"gain": 10}}
INVERTER = {"dead_time": 0, "switching_frequency": 16e3, "supply_voltage": 300, "on_voltage": 0.8}
OVERLOAD = {"current_limit": 20, "overload": {"continuous_current": 5, "time_constant": 10}}
GEAR = {"ratio": 5, "stiffness": 500, "damping": 0.1}
# name -> (motor, further keys of the drive)
DRIVES: dict[str, tuple[str, dict[str, Any]]] = {
    **{motor: (motor, {"control": {"voltage_limit": 150}}) for motor in MOTORS},
    "powers": (
        "pmsm",
        {"powers": True, "gears": [GEAR], "control": {"inverter": INVERTER}, "friction": {"coulomb": 1}},
    ),
    "a limit of the current": ("pmsm", {"control": OVERLOAD}),
    "loops": ("pmsm", {"loops": LOOPS, "brake": {"effort": 50}}),
    "steps": ("stepper", {"open_loop": {"steps": {"current": 2}}}),
    "V/f": ("induction_machine", {"open_loop": {"volts_per_hertz": {"voltage": 230, "frequency": 50}}}),
}


def rig_of(motor: str, drive: dict[str, Any], **others: Any) -> Rig:
    kind = "prismatic" if motor == "linear_motor" else "continuous"
    body = {"name": "load", "joint": "axis", "type": kind, "axis": [0, 0, 1], "mass": 2, "inertia": [0.1, 0.1, 0.1]}
    actuator = {"type": "drive", "motor": {"type": motor, **MOTORS[motor]}, **drive}
    rig = {"mechanism": {"gravity": [0, 0, 0], "bodies": [body]}, "joints": {"axis": {"actuator": actuator}}}
    schedule = {"step": "1 ms", "integrator": "rodas4", "substeps": "auto"}
    return Rig.from_dict({**rig, "schedule": schedule, **others})


def on_supply(source: str) -> Rig:
    chopper = {"threshold": 350, "resistance": 20}
    link = {"source": {"type": source, **SOURCES[source]}, "capacitance": 1e-3, "chopper": chopper}
    return rig_of("pmsm", {"supply": "link"}, supplies={"link": link})


def recorded(rig: Rig) -> set[str]:
    """The signals of the rig beside those of every joint, with the kind of their owner."""
    found = set()
    for name, _ in channels_of(rig):
        owner, _, what = name.rpartition("/")
        if owner not in ("energy", "steps") and what not in FURTHER:
            found.add(f"<joint>/{what}" if owner in rig.joints else f"<supply>/{what}")
    return found


def pattern(row: str) -> re.Pattern[str]:
    return re.compile(re.escape(row).replace(re.escape("<part>"), LOSS).replace(re.escape("<node>"), r"\w+"))


def undocumented(names: set[str]) -> list[str]:
    return sorted(name for name in names if not any(pattern(row).fullmatch(name) for row in ROWS))


@pytest.mark.parametrize("name", [*DRIVES, *SOURCES])
def test_the_page_has_every_signal_of_a_drive(name: str) -> None:
    rig = on_supply(name) if name in SOURCES else rig_of(*DRIVES[name])
    assert not undocumented(recorded(rig))


@pytest.mark.parametrize("name", ["dc_link", "industrial_arm", "servo_axis"])
def test_the_page_has_every_signal_of_a_sample(name: str) -> None:
    assert not undocumented(recorded(load_rig(FOLDER / "drives" / f"{name}.yaml")))


def test_every_signal_on_the_page_is_recorded() -> None:
    rigs = [*(rig_of(*given) for given in DRIVES.values()), *map(on_supply, SOURCES)]
    names = set[str]().union(*map(recorded, rigs))
    names |= {"<joint>/current", "<joint>/voltage"}  # of `dc_motor`
    assert not [row for row in ROWS if not any(pattern(row).fullmatch(name) for name in names)]


def test_every_motor_and_every_source_is_looked_at() -> None:
    assert set(MOTORS) == set(ElectricMachine.types) and set(SOURCES) == set(DcSource.types)
    assert {"loops", "open_loop", "brake", "supply", "powers"} < {field for field in Params.__dataclass_fields__}
