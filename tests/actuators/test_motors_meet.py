"""Motors of drives meet the rest of the framework: every motor and every feature, beside another path to the same
numbers, or refused with what to do."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from cosim import Rig, compare, load_rig
from cosim.apps.deploy.tick_code import tick_code
from cosim.core.errors import InputError
from cosim.rig.rerun import rerun
from tests.actuators.test_open_loop_drive import gap_of
from tests.actuators.test_switched_inverter import INVERTER, LOOPS, MOTORS, ROTOR
from tests.fmu_export.instances import imported, written
from tests.kit.messages import Said
from tests.kit.objects import ObjectRig
from tests.kit.refusals import raised
from tests.kit.wasm import WasmRig, module

CURRENTS_D, CURRENTS_Q = [-30, -10, 0, 10, 30], [0, 10, 20, 30]
TABLES = {
    "currents_d": CURRENTS_D,
    "currents_q": CURRENTS_Q,
    "flux_d": [[0.02 + 4e-4 * d for _ in CURRENTS_Q] for d in CURRENTS_D],
    "flux_q": [[5e-4 * q for q in CURRENTS_Q] for _ in CURRENTS_D],
}
SALIENT = {"pole_pairs": 4, "resistance": 0.2, "inductance_d": 4e-4, "inductance_q": 5e-4, "flux": 0.02}
CONTROL = {"bandwidth": 1000, "voltage_limit": 24, "current_limit": 20}
# the motor and what else its drive has
DRIVES: dict[str, dict[str, Any]] = {
    "induction_machine": {"motor": {"type": "induction_machine", **MOTORS["induction_machine"]}},
    "bldc": {"motor": {"type": "bldc", **MOTORS["bldc"]}},
    "stepper": {"motor": {"type": "stepper", **MOTORS["stepper"]}},
    "pmsm with tables": {"motor": {"type": "pmsm", **SALIENT, "flux_tables": TABLES}},
    "switched dc_machine": {
        "motor": {"type": "dc_machine", **MOTORS["dc_machine"]},
        "control": {**CONTROL, "inverter": {**INVERTER, "switched": True}},
    },
}
FIXED = {"integrator": "rodas4", "substeps": 20}  # raised to the samples and the ripple
TICKS = 20


def wheel(motor: str, loops: bool = True, drive: dict[str, Any] | None = None, **schedule: Any) -> dict[str, Any]:
    section: dict[str, Any] = {"type": "drive", "control": CONTROL, **DRIVES[motor], **(drive or {})}
    section["motor"] = section["motor"] | ROTOR
    trajectory = {"type": "quintic", "goal": 2.0, "duration": 0.05}
    controller = {"type": "passthrough", "kp": 1, "kd": 0} if loops else {"type": "pid", "kp": 1, "ki": 0, "kd": 0.01}
    body = {"name": "wheel", "joint": "hinge", "axis": [0, 0, 1], "mass": 1, "inertia": [1e-4, 1e-4, 1e-4]}
    return {
        "name": "wheel",
        "mechanism": {"gravity": [0, 0, 0], "bodies": [body]},
        "joints": {"hinge": {"actuator": section | ({"loops": LOOPS} if loops else {})}},
        "controllers": [{**controller, "trajectory": trajectory}],
        "schedule": {"step": "1 ms", "duration": "25 ms", **(schedule or FIXED)},
    }


def at_tick(rig: Rig, found: dict[str, float], tolerance: float) -> None:
    run = rig.run()
    names = [name for name in run.signals if name in found]
    assert len(names) > 15
    for name in names:
        scale = max(1.0, float(np.abs(run[name]).max()))
        assert found[name] == pytest.approx(run[name][TICKS], abs=tolerance * scale), name


def signals_of(rig: Rig, values: Any) -> dict[str, float]:
    return dict(zip(rig.tick_model.signals.names, values, strict=True))


# --- features: the name of a drive, a folder -> a check -------------------------------------------


def as_an_fmu(motor: str, folder: Path) -> None:
    """To the tick, and again from a saved state."""
    rig = Rig.from_dict(wheel(motor))
    with imported(written(rig, folder, 3), folder / "unit") as unit:
        unit.begin()
        names = tuple(unit.references.keys() & set(rig.tick_model.signals.names))
        unit.advance(TICKS - 5)
        saved = unit.fmu.getFMUState()
        unit.advance(5)
        found = unit[names]
        at_tick(rig, dict(zip(names, found, strict=True)), 1e-13)
        unit.fmu.setFMUState(saved)
        unit.number -= 5
        unit.advance(5)
        assert unit[names] == found


def as_an_object(motor: str, folder: Path) -> None:
    """With steps of chosen length."""
    rig = Rig.from_dict(wheel(motor, integrator="rodas4", substeps="auto", tolerance=1e-7))
    code = ObjectRig(rig)
    code.call("reset")
    assert code.call("ticks", 0, TICKS + 1) == TICKS + 1
    at_tick(rig, signals_of(rig, code.signals()), 1e-13)


def as_web_assembly(motor: str, folder: Path) -> None:
    rig = Rig.from_dict(wheel(motor))
    code = tick_code(rig.tick_model, "rig")
    unit = WasmRig(code, module(code).code)
    assert unit.ticks(0, TICKS + 1) == TICKS + 1
    at_tick(rig, signals_of(rig, unit.result("signals", len(rig.tick_model.signals.names))), 1e-9)


def with_powers(motor: str, folder: Path) -> None:
    """The energies of its parts are all that it has dissipated, with sampled and with continuous loops."""
    for loops in (True, False):
        data = wheel(motor, loops, {"powers": True}, integrator="rodas4", substeps="auto", tolerance=1e-8)
        run = Rig.from_dict(data).run()
        assert gap_of(run) < 1e-6
        parts = [name for name in run.signals if name.endswith("_energy") and name.startswith("hinge/")]
        lost = sum(run[name][-1] for name in parts if "electrical" not in name and "returned" not in name)
        assert lost == pytest.approx(run["energy/dissipated"][-1], rel=1e-9) and lost > 0.0


def with_a_brake(motor: str, folder: Path) -> None:
    """Which holds at first, and stops the wheel after the drive is switched off."""
    brake = {"effort": 0.5, "opens": 0.002, "closes": 0.002}
    data = wheel(motor, True, {"brake": brake}, integrator="rodas4", substeps="auto", tolerance=1e-7)
    data["events"] = [{"do": "disable", "of": "hinge", "at": "15 ms"}]
    data["schedule"]["duration"] = "40 ms"
    run = Rig.from_dict(data).run()
    assert gap_of(run) < 1e-6
    assert run["hinge/velocity"].max() > 20.0
    assert not run["hinge/velocity"][[0, 1, -1]].any() and run["hinge/brake"][[0, 10, -1]].tolist() == [1.0, 0.0, 1.0]


def differentiated(motor: str, folder: Path) -> None:
    """By the inertia of the wheel, beside central differences."""
    rig, name, h = Rig.from_dict(wheel(motor, loops=False)), "mechanism.wheel.inertia", 1e-8
    exact = rig.gradient("error_rms", [name], duration="5 ms")[name][2]
    rows = np.tile(np.array(rig.numbers[name]), (2, 1))
    rows[:, 2] += [-h, h]
    low, high = rig.rollouts({name: rows}, metrics=["error_rms"], duration="5 ms")["error_rms"].sum(axis=1)
    assert exact == pytest.approx((high - low) / (2.0 * h), rel=1e-4)


def recorded(motor: str, folder: Path) -> None:
    """A recording is equal to the run and to its repetition."""
    (folder / "wheel.yaml").write_text(yaml.safe_dump(wheel(motor), sort_keys=False))
    run = load_rig(folder / "wheel.yaml").run(record=folder / "wheel.mcap")
    assert rerun(folder / "wheel.mcap").difference is None
    assert compare(folder / "wheel.mcap", run).identical


FEATURES: dict[str, Callable[[str, Path], None]] = {
    "as an FMU": as_an_fmu,
    "as an object": as_an_object,
    "as WebAssembly": as_web_assembly,
    "with powers": with_powers,
    "with a brake": with_a_brake,
    "differentiated": differentiated,
    "recorded": recorded,
}


# the way back through 320 substeps takes a minute to compile
PAIRS = [pair for pair in product(FEATURES, DRIVES) if pair != ("differentiated", "switched dc_machine")]


@pytest.mark.parametrize(("feature", "motor"), PAIRS)
def test_a_motor_of_a_drive(tmp_path: Path, feature: str, motor: str) -> None:
    FEATURES[feature](motor, tmp_path)


SUPPLY = {"bus": {"source": {"type": "diode_bridge", "voltage": 48, "resistance": 0.05}, "capacitance": 5e-3}}


@pytest.mark.parametrize("motor", DRIVES)
def test_a_motor_on_a_supply(motor: str, said: Said) -> None:
    """It moves as alone where the link has enough voltage, and the energy of both closes; or it is refused."""
    accurate = {"integrator": "rodas4", "substeps": "auto", "tolerance": 1e-8}
    data = {**wheel(motor, False, {"supply": "bus"}, **accurate), "supplies": SUPPLY}
    if motor == "switched dc_machine":
        said(raised(InputError, Rig.from_dict, data))
        return
    run, alone = Rig.from_dict(data).run(), Rig.from_dict(wheel(motor, False, **accurate)).run()
    assert gap_of(run) < 1e-6
    np.testing.assert_allclose(run["hinge/position"], alone["hinge/position"], atol=1e-6)
