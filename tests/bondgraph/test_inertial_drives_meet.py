"""Drives that are solved together with the mechanism meet the rest of the framework: every drive and every feature,
beside another path to the same numbers, or refused with what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from cosim import Rig, Run, compare, load_rig
from cosim.apps.deploy.tick_code import tick_code
from cosim.apps.identification.equation_error import check_identifiable_rig
from cosim.core.errors import InputError
from cosim.rig.rerun import rerun
from tests.bondgraph.inertial_rigs import DRIVES, PD, ROTORS, SIDES, arm
from tests.bondgraph.test_inertial_drives import same
from tests.fmu_export.instances import VERSIONS, imported, written
from tests.kit.messages import Said
from tests.kit.objects import ObjectRig
from tests.kit.refusals import raised
from tests.kit.wasm import WasmRig, module

SHARED = "a differential"
TICKS = 50


def closes(run: Run) -> None:
    energy = run.summary["energy"]
    assert energy is not None and abs(energy["residual_relative"]) < 1e-9


def at_tick(run: Run, found: dict[str, float], tolerance: float) -> None:
    """Whether the signals of a tick are those of a run."""
    names = [name for name in run.signals if name in found]
    assert len(names) > 10
    for name in names:
        assert found[name] == pytest.approx(run[name][TICKS], rel=tolerance, abs=tolerance), name


def signals_of(rig: Rig, values: Any) -> dict[str, float]:
    return dict(zip(rig.tick_model.signals.names, values, strict=True))


# --- features: the name of a drive, a folder -> a check -------------------------------------------


def interpreted(drive: str, folder: Path) -> None:
    run = Rig.from_dict(arm(drive)).run("30 ms")
    closes(run)
    same(run, Rig.from_dict(arm(drive), interpret=True).run("30 ms"), 1e-12)


def of_another_formulation(drive: str, folder: Path) -> None:
    """Whose equations take no rotors of drives."""
    data = arm(drive)
    run = Rig.from_dict(data).run()
    for name in ("lagrange", "cartesian"):
        data["mechanism"]["formulation"] = name
        same(run, Rig.from_dict(data).run(), 1e-11)


def with_bristles_of_another_formulation(drive: str, folder: Path) -> None:
    """Bristles begin as they hold the joint: by the equations that know held joints."""
    data = arm(drive, integrator="rodas4")
    data["joints"]["elbow"] = {"friction": {"coulomb": 2, "static": 3, "bristle_damping": 1}}
    run = Rig.from_dict(data).run()
    data["mechanism"]["formulation"] = "gauss"
    same(run, Rig.from_dict(data).run(), 1e-10)


def as_an_fmu(drive: str, folder: Path) -> None:
    """To the tick, and again from a saved state."""
    rig = Rig.from_dict(arm(drive))
    run = rig.run()
    for version in VERSIONS:
        with imported(written(rig, folder, version), folder / str(version)) as unit:
            unit.begin()
            names = tuple(name for name in run.signals if name in unit.references)
            unit.advance(TICKS - 10)
            saved = unit.fmu.getFMUState()
            unit.advance(10)
            found = unit[names]
            at_tick(run, dict(zip(names, found, strict=True)), 1e-13)
            unit.fmu.setFMUState(saved)
            unit.number -= 10
            unit.advance(10)
            assert unit[names] == found


def as_an_object(drive: str, folder: Path) -> None:
    rig = Rig.from_dict(arm(drive))
    code = ObjectRig(rig)
    code.call("reset")
    assert code.call("ticks", 0, TICKS + 1) == TICKS + 1
    at_tick(rig.run(), signals_of(rig, code.signals()), 1e-13)


def as_web_assembly(drive: str, folder: Path) -> None:
    rig = Rig.from_dict(arm(drive))
    code = tick_code(rig.tick_model, "rig")
    unit = WasmRig(code, module(code).code)
    assert unit.ticks(0, TICKS + 1) == TICKS + 1
    at_tick(rig.run(), signals_of(rig, unit.result("signals", len(rig.tick_model.signals.names))), 1e-11)


def under_an_external_effort(drive: str, folder: Path) -> None:
    """Of an importer, beside springs that are wound up so far that they push with the same effort all the time."""
    efforts = {"shoulder": 2.0, "elbow": -0.7}
    data = arm(drive, PD)  # which has no model of the springs
    with imported(written(Rig.from_dict(data), folder, 3, "*/external_effort"), folder / "unit") as unit:
        unit.begin()
        for name, effort in efforts.items():
            unit.set(f"{name}/external_effort", effort)
        unit.advance(TICKS)
        found = unit[("shoulder/position", "elbow/position", "shoulder/velocity", "elbow/velocity")]
    for body, effort in zip(data["mechanism"]["bodies"], efforts.values(), strict=True):
        body |= {"stiffness": 1e-7, "unloaded_position": effort * 1e7}
    run = Rig.from_dict(data).run()
    expected = [run[f"{name}/{what}"][TICKS] for what in ("position", "velocity") for name in efforts]
    assert found == pytest.approx(expected, abs=1e-6)


PART = """
import numpy as np
from cosim.plugin import Signal, param, params

@params
class Params:
    stiffness: float = param(unit="N*m/rad", min=0.0)

class TorsionSpring:
    inputs = {"speed": Signal((), "rad/s", "of its end")}
    outputs = {"torque": Signal((), "N*m", "on what turns it")}
    positions = ()

    def __init__(self, params):
        self.params = params

    def initial(self, *_):
        return {"twist": np.zeros(())}

    def flow(self, t, p, x, u):
        return {"twist": u["speed"]}, {"torque": -p.stiffness * x["twist"]}

def load(params):
    return TorsionSpring(params)
"""


def coupled_to_a_part(drive: str, folder: Path) -> None:
    """A spring on the elbow, as a part beside the one in the mechanism."""
    data = arm(drive, PD)
    inside = arm(drive, PD)
    inside["mechanism"]["bodies"][1]["stiffness"] = 20
    bond = {"effort": ["load.torque", "mechanism.elbow/effort"], "flow": ["mechanism.elbow/velocity", "load.speed"]}
    data |= {"parts": [{"name": "load", "type": "spring.py", "params": {"stiffness": 20}}]}
    data |= {"couplings": {"bonds": [bond]}}
    (folder / "spring.py").write_text(PART)
    (folder / "arm.yaml").write_text(yaml.safe_dump(data, sort_keys=False))
    run, expected = load_rig(folder / "arm.yaml").run(), Rig.from_dict(inside).run()
    closes(run)
    for name in ("shoulder/position", "elbow/position", "elbow/velocity"):
        np.testing.assert_allclose(run[name], expected[name], atol=2e-4, err_msg=name)
    assert np.abs(expected["elbow/position"] - Rig.from_dict(arm(drive, PD)).run()["elbow/position"]).max() > 2e-3


def braked(drive: str, folder: Path) -> None:
    """A brake that holds is a latch; one that slips takes its energy."""
    data = arm(drive, PD)
    data["joints"]["shoulder"]["initial"] = {"position": 0.3}
    runs = []
    for do in ({"do": "brake", "effort": 1e4}, {"do": "latch"}):
        data["events"] = [{**do, "of": "shoulder", "at": "0 ms"}]
        runs.append(Rig.from_dict(data).run())
    for name in ("shoulder/position", "elbow/position", "elbow/velocity", "elbow/effort"):
        np.testing.assert_allclose(runs[0][name], runs[1][name], atol=1e-9, err_msg=name)
    slipping = arm(drive)
    slipping["events"] = [{"do": "brake", "effort": 1, "of": "shoulder", "at": "20 ms"}]
    run = Rig.from_dict(slipping).run()
    closes(run)
    assert run["energy/dissipated"][-1] > 1e-2


def latched(drive: str, folder: Path) -> None:
    """Each of its joints in motion: the impulse takes an energy, and no more."""
    for name in ("shoulder", "elbow"):
        data = arm(drive)
        data["events"] = [{"do": "latch", "of": name, "at": "20.5 ms"}]
        run = Rig.from_dict(data).run()
        closes(run)
        assert not run[f"{name}/velocity"][run.t > 0.021].any()


def at_a_stop(drive: str, folder: Path) -> None:
    data = arm(drive)
    data["joints"]["shoulder"]["stops"] = {"upper": 0.02, "restitution": 0.4}
    run = Rig.from_dict(data).run()
    closes(run)
    assert run["shoulder/velocity"].min() < -0.05


def beside_computed_torque(drive: str, folder: Path) -> None:
    """Its model has the inertia of the drive at the start; it does not know the ring of a planetary gear."""
    controller = {"type": "computed_torque", "bandwidth": 20, "trajectory": PD["trajectory"]}
    data = arm(drive, controller)
    for joint in data["joints"].values():
        joint.pop("initial")
    joints = Rig.from_dict(data).run("0.4 s").summary["joints"]
    for name in ("shoulder", "elbow"):
        error = joints[name]["error_max"]
        assert error is not None and error < 0.02


def in_rollouts(drive: str, folder: Path) -> None:
    """To the bit as runs of rigs with these numbers."""
    masses = {"mechanism.fore.mass": [1.0, 1.5], "feedforward_pd.kp/shoulder": [20.0, 30.0]}
    batch = Rig.from_dict(arm(drive)).rollouts(masses, duration="50 ms")
    other = arm(drive)
    other["mechanism"]["bodies"][1]["mass"], other["controllers"][0]["kp"] = 1.5, [30, 20]
    for k, data in enumerate((arm(drive), other)):
        run = Rig.from_dict(data).run("50 ms")
        for name in ("shoulder/position", "shoulder/effort", "elbow/velocity"):
            assert batch.final[name][k] == pytest.approx(run[name][-1], rel=1e-12), name


def differentiated(drive: str, folder: Path) -> None:
    rig, name, h = Rig.from_dict(arm(drive)), "mechanism.fore.mass", 1e-4
    exact = rig.gradient("error_rms", [name, "feedforward_pd.kp"], duration="50 ms")[name]
    batch = rig.rollouts({name: [1.0 - h, 1.0 + h]}, metrics=["error_rms"], duration="50 ms")
    low, high = batch["error_rms"].sum(axis=1)
    assert abs(exact) > 1e-5 and exact == pytest.approx((high - low) / (2.0 * h), rel=1e-5)


def recorded(drive: str, folder: Path) -> None:
    """A recording is equal to the run and to its repetition."""
    (folder / "arm.yaml").write_text(yaml.safe_dump(arm(drive), sort_keys=False))
    run = load_rig(folder / "arm.yaml").run(record=folder / "arm.mcap")
    assert rerun(folder / "arm.mcap").difference is None
    assert compare(folder / "arm.mcap", run).identical


FEATURES: dict[str, Callable[[str, Path], None]] = {
    "interpreted": interpreted,
    "of another formulation": of_another_formulation,
    "with bristles, of another formulation": with_bristles_of_another_formulation,
    "as an FMU": as_an_fmu,
    "as an object": as_an_object,
    "as WebAssembly": as_web_assembly,
    "under an external effort": under_an_external_effort,
    "coupled to a part": coupled_to_a_part,
    "braked": braked,
    "latched": latched,
    "at a stop": at_a_stop,
    "beside computed torque": beside_computed_torque,
    "in rollouts": in_rollouts,
    "differentiated": differentiated,
    "recorded": recorded,
}


@pytest.mark.parametrize("drive", DRIVES)
@pytest.mark.parametrize("feature", FEATURES)
def test_a_drive_that_is_solved_with_the_mechanism(tmp_path: Path, feature: str, drive: str) -> None:
    FEATURES[feature](drive, tmp_path)


def test_an_impact_of_a_differential_keeps_the_momentum_of_the_other_joint() -> None:
    """(M + B) Δv has an impulse on the joint that hits its stop alone: by hand, with the rotors of both joints."""
    data = arm(SHARED, None)
    data["mechanism"]["gravity"] = [0, 0, 0]
    data["joints"]["shoulder"] = {"initial": {"velocity": 2}, "stops": {"upper": 0.05, "restitution": 0.4}}
    data["joints"]["elbow"]["initial"] = {"velocity": -1}
    rig = Rig.from_dict(data)
    run = rig.run(0.026)  # the impact is at 25 ms
    v, q = (np.array([run[f"{name}/{what}"] for name in rig.joints]) for what in ("velocity", "position"))
    sides = np.array(SIDES)
    total = rig.plant.model.mass_matrix(q[:, 25]) + sides.T @ np.diag(ROTORS) @ sides
    impulse = total @ (v[:, 26] - v[:, 24])
    assert v[0, 26] == pytest.approx(-0.4 * v[0, 24], rel=1e-3)
    assert impulse[0] < -1.0 and abs(impulse[1]) < 1e-4
    closes(run)


# --- what has a reason not to be ------------------------------------------------------------------

REAL = {"type": "mit", "bus": {"interface": "virtual", "channel": "0", "bitrate": "1 Mbit/s"}, "watchdog": "100 ms"}


def with_real_motor(drive: str, joint: str = "shoulder") -> dict[str, Any]:
    data = arm(drive)
    for name, each in data["joints"].items():
        each |= {"initial": {}, "limits": {"velocity": 12, "effort": 18}}
        assert name in ("shoulder", "elbow")
    return data | {"drivers": [{**REAL, "joints": {joint: {"id": 1, "model": "AK80-9@v2"}}}]}


@pytest.mark.parametrize("drive", [name for name in DRIVES if name != SHARED])
def test_the_model_of_a_real_joint_has_the_inertia_of_its_drive(drive: str) -> None:
    """As the model of the controller has it where the drive is simulated."""
    data = with_real_motor(drive)
    real, simulated = Rig.from_dict(data), Rig.from_dict({**data, "drivers": []})
    of_drive = real.plant.controller_model.drive_rotors
    assert of_drive["shoulder"] > 0.01
    assert of_drive == pytest.approx(simulated.plant.controller_model.drive_rotors)


@pytest.mark.parametrize("drive", DRIVES)
def test_what_is_refused(said: Said, drive: str) -> None:
    """A prescribed joint of it, a real motor of a joint that it shares, a twin, multirate, and the equation error."""
    prescribed = arm(drive, None)
    prescribed["joints"]["shoulder"] |= {
        "prescribed": {"type": "sine", "amplitude": 0.2, "frequency": 2},
        "initial": {},
    }
    twin = with_real_motor(drive) | {"guard": {"shadow": {"bandwidth": "1 Hz"}}}
    given = [prescribed, twin]
    if drive == SHARED:
        given += [with_real_motor(drive, "elbow"), arm(drive, integrator="multirate")]
    for data in given:
        said(raised(InputError, Rig.from_dict, data))
    said(raised(InputError, check_identifiable_rig, Rig.from_dict(arm(drive))))
