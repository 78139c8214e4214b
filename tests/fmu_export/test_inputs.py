"""Efforts and references that the importer gives, against another integrator and the trajectory; wrong inputs."""

from __future__ import annotations

import fmpy
import numpy as np
import pytest
from fmpy.validation import validate_fmu
from scipy.integrate import solve_ivp

from cosim.apps.deploy.fmu_export.fmu_file import fmu_of
from cosim.core.errors import CosimError
from tests.fmu_export.instances import VERSIONS, imported, written
from tests.kit.command import RIG
from tests.kit.refusals import raised

CHAIN = """
name: chain
mechanism:
  bodies:
    - {name: cart, joint: rail, type: prismatic, axis: [1, 0, 0], mass: 2 kg, inertia: [0.1, 0.1, 0.1]}
    - {name: pole, parent: cart, joint: pole, axis: [0, 1, 0], mass: 0.5 kg, com: [0, 0, -0.4],
       inertia: [0.03, 0.03, 0.001], damping: 0.02}
joints:
  rail: {}
  pole: {initial: {position: 0.3}}
schedule: {step: 1 ms, duration: 0.2 s}
"""
INPUTS = ("pole/external_effort", "rail/external_effort")
ELBOW = ("elbow_joint/external_effort", "elbow_joint/reference_position")
TICKS = 150


def given(tick):
    """(effort on the rail [N], on the pole [N·m]) during a tick."""
    return np.array([4.0 * np.sin(0.05 * tick), -0.3 if tick > 40 else 0.2])


@pytest.fixture(scope="module")
def exact(shared_rig):
    """(TICKS + 1, 4): positions and velocities at the ticks."""
    model = shared_rig(CHAIN).plant.model
    states = [np.array([0.0, 0.3, 0.0, 0.0])]

    def flow(t, y, effort):
        return np.concatenate([y[2:], model.forward_dynamics(y[:2], y[2:], effort - [0.0, 0.02 * y[3]])])

    for tick in range(TICKS):
        settings = {"rtol": 1e-12, "atol": 1e-14, "args": (given(tick),)}
        states.append(solve_ivp(flow, (0.0, 1e-3), states[-1], "DOP853", **settings).y[:, -1])
    return np.array(states)


@pytest.mark.parametrize("version", VERSIONS)
def test_efforts_move_the_joints_as_in_another_integrator(exported, tmp_path, exact, version):
    file = exported(CHAIN, version, *INPUTS)
    assert validate_fmu(str(file)) == []
    names = ("rail/position", "pole/position", "rail/velocity", "pole/velocity")
    with imported(file, tmp_path / "unzipped") as unit:
        declared = {item.name: item for item in unit.description.modelVariables}
        assert [(declared[name].causality, declared[name].unit) for name in INPUTS] == [
            ("input", "N*m"),
            ("input", "N"),
        ]
        unit.begin()
        found = []
        for tick in range(TICKS + 1):
            effort = given(tick)
            unit.set("rail/external_effort", effort[0])
            unit.set("pole/external_effort", effort[1])
            found.append(unit[names])
            unit.advance(1)
    np.testing.assert_allclose(found, exact, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("version", VERSIONS)
def test_accelerations_follow_an_effort_at_the_same_time(shared_rig, exported, tmp_path, version):
    rig = shared_rig(CHAIN)
    with imported(exported(CHAIN, version, *INPUTS), tmp_path / "unzipped") as unit:
        unit.begin()
        unit.advance(10)
        q, v, names = ("rail/position", "pole/position"), ("rail/velocity", "pole/velocity"), rig.joints
        position, velocity = np.array(unit[q]), np.array(unit[v])
        for effort in ([0.0, 0.0], [3.0, -1.0], [-7.0, 0.5]):
            for name, value in zip(names, effort, strict=True):
                unit.set(f"{name}/external_effort", value)
            expected = rig.plant.model.forward_dynamics(position, velocity, effort - np.array([0.0, 0.02]) * velocity)
            np.testing.assert_allclose(unit[tuple(f"{name}/acceleration" for name in names)], expected, rtol=1e-12)


def test_their_work_is_in_the_energy_of_the_plant(exported):
    file = exported(CHAIN, 2, "*/external_effort")
    times = np.arange(TICKS + 1) * 1e-3
    signals = np.array(
        [(t, *given(k)) for k, t in enumerate(times)],
        dtype=[("time", float), ("rail/external_effort", float), ("pole/external_effort", float)],
    )
    outputs = ["energy/stored", "energy/parts", "energy/dissipated", "rail/position"]
    settings = {"step_size": 1e-3, "output_interval": 1e-3, "output": outputs, "input": signals}
    result = fmpy.simulate_fmu(str(file), stop_time=times[-1], **settings)
    stored, work, lost = (result[name] - result[name][0] for name in outputs[:3])
    assert np.abs(work).max() > 0.01
    np.testing.assert_allclose(stored, work - lost, rtol=0.0, atol=1e-9)


def test_without_a_value_an_input_changes_nothing(sample, tmp_path):
    rig = sample("ur5_sim")
    run = rig.run(duration=0.1)
    result = fmpy.simulate_fmu(str(written(rig, tmp_path, 2, "elbow_joint/external_effort")), stop_time=0.1)
    expected = [run["elbow_joint/position"][-1], run["energy/work"][-1]]
    np.testing.assert_allclose([result[name][-1] for name in ("elbow_joint/position", "energy/work")], expected, 1e-12)


REFERENCE = ("hinge/reference_position", "hinge/reference_velocity")
FOLLOWED = ("hinge/position", "hinge/velocity", "hinge/command_effort")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_reference_that_is_given_is_followed_as_that_of_the_trajectory(shared_rig, exported, tmp_path, version):
    """Without its acceleration, which this controller does not use."""
    run = shared_rig(RIG).run(duration=0.3)
    file = exported(RIG, version, "*/reference_position")
    assert validate_fmu(str(file)) == []
    with imported(file, tmp_path / "unzipped") as unit:
        unit.begin()
        assert unit[REFERENCE] == [pytest.approx(np.deg2rad(10.0), rel=1e-15), 0.0]
        for tick in range(301):
            for name in REFERENCE:
                unit.set(name, run[name][tick])
            np.testing.assert_allclose(unit[REFERENCE], [run[name][tick] for name in REFERENCE], rtol=0.0, atol=1e-14)
            np.testing.assert_allclose(unit[FOLLOWED], [run[name][tick] for name in FOLLOWED], rtol=0.0, atol=1e-10)
            unit.advance(1)


MOTION = ("position", "velocity", "acceleration")


def test_a_rig_that_is_led_from_outside_follows_as_with_its_own_trajectory(sample, tmp_path):
    """A quintic from pose to pose, whose acceleration the controller needs: its tracking errors are the same to 1e-11
    rad. Without the acceleration they differ by more than 1 mrad."""
    rig, ticks = sample("ur5_sim", "controllers.arm.trajectory.duration=1.5", "controllers.arm.trajectory.delay=0"), 250
    run, joints = rig.run(duration=ticks * 1e-3), rig.joints
    error = np.array([run[f"{joint}/reference_position"] - run[f"{joint}/position"] for joint in joints]).T
    with imported(written(rig, tmp_path, 2, "*/reference_position"), tmp_path / "unzipped") as unit:
        declared = [item.name for item in unit.description.modelVariables if item.causality == "input"]
        assert declared == [f"{joint}/reference_{what}" for joint in joints for what in (*MOTION, "effort")]

        def led(known):
            """The tracking errors (ticks + 1, joints) where this is given of the references."""
            names = [f"{joint}/reference_{what}" for joint in joints for what in known]
            references, values = [unit.references[name] for name in names], np.array([run[name] for name in names])
            unit.fmu.reset()
            unit.begin()
            unit.number, found = 0, []
            for tick in range(ticks + 1):
                unit.fmu.setReal(references, values[:, tick].tolist())
                positions = unit[tuple(f"{joint}/position" for joint in joints)]
                found.append([run[f"{joint}/reference_position"][tick] for joint in joints] - np.array(positions))
                unit.advance(1)
            return np.array(found)

        np.testing.assert_allclose(led(MOTION), error, rtol=0.0, atol=1e-11)
        assert np.abs(error).max() > 1e-3 and np.abs(led(MOTION[:2]) - error).max() > 1e-3


def test_a_rig_with_parts_is_led_from_outside(shared_rig, exported, tmp_path):
    run = shared_rig("cosimulation/winch").run(duration=0.2)
    names = ("winch/position", "hoist/torque", "hoist-mechanism/residual_energy")
    with imported(exported("cosimulation/winch", 2, "*/reference_position"), tmp_path / "unzipped") as unit:
        unit.begin()
        for tick in range(201):
            for what in MOTION:
                unit.set(f"winch/reference_{what}", run[f"winch/reference_{what}"][tick])
            np.testing.assert_allclose(unit[names], [run[name][tick] for name in names], rtol=1e-12, atol=1e-12)
            unit.advance(1)
    assert run["winch/position"][-1] > 1e-3


def test_a_feedforward_effort_that_is_given_is_that_of_the_trajectory(rig_of, tmp_path):
    chirp = "{type: chirp, of: effort, amplitude: 2, f0: 1 Hz, f1: 5 Hz, duration: 0.3}"
    rig = rig_of(RIG, f"controllers.hold.trajectory={chirp}")
    run = rig.run(duration=0.3)
    assert np.ptp(run["hinge/reference_effort"]) > 3.0
    with imported(written(rig, tmp_path, 2, "hinge/reference_position"), tmp_path / "unzipped") as unit:
        unit.begin()
        for tick in range(301):
            unit.set("hinge/reference_effort", run["hinge/reference_effort"][tick])
            np.testing.assert_allclose(unit[FOLLOWED], [run[name][tick] for name in FOLLOWED], rtol=0.0, atol=1e-10)
            unit.advance(1)


def test_a_reference_goes_on_at_its_acceleration_within_a_step(exported, tmp_path):
    with imported(exported(RIG, 3, "*/reference_position"), tmp_path / "unzipped") as unit:
        unit.begin()
        for what, value in (("position", 0.2), ("velocity", 0.5), ("acceleration", -3.0)):
            unit.set(f"hinge/reference_{what}", value)
        unit.advance(1, 100)
        expected = [0.2 + 0.05 - 0.5 * 3.0 * 0.01, 0.5 - 0.3, -3.0]
        np.testing.assert_allclose(unit[tuple(f"hinge/reference_{what}" for what in MOTION)], expected, rtol=1e-13)


def test_a_reference_goes_on_at_its_velocity_within_a_step(exported, tmp_path):
    file = exported(RIG, 2, "*/reference_position")
    with imported(file, tmp_path / "a") as a, imported(file, tmp_path / "b") as b:
        for unit, count, ticks in ((a, 4, 50), (b, 200, 1)):
            unit.begin()
            for k in range(count):
                t = k * ticks * unit.step
                unit.set("hinge/reference_velocity", 0.5)
                unit.set("hinge/reference_position", 0.2 + 0.5 * t)
                unit.advance(1, ticks)
        np.testing.assert_allclose(a[REFERENCE], [0.2 + 0.5 * 0.2, 0.5], rtol=1e-14)
        np.testing.assert_allclose(a[FOLLOWED], b[FOLLOWED], rtol=0.0, atol=1e-12)
        a.set("hinge/reference_velocity", -1.0)
        np.testing.assert_allclose(a[REFERENCE], [0.3, -1.0], rtol=1e-14)


def test_other_joints_keep_their_trajectories(shared_rig, exported, tmp_path):
    rig = shared_rig("ur5_sim")
    run, joint = rig.run(duration=1.0), "elbow_joint"
    with imported(exported("ur5_sim", 2, *ELBOW), tmp_path / "unzipped") as unit:
        unit.begin()
        unit.advance(1000)
        others = [name for name in rig.joints if name != joint]
        names = tuple(f"{name}/reference_{what}" for name in others for what in ("position", "acceleration"))
        assert unit[names] == [run[name][-1] for name in names]
        assert unit[(f"{joint}/reference_position",)] == [run[f"{joint}/reference_position"][0]]
        assert abs(unit[(f"{joint}/position",)][0] - run[f"{joint}/position"][-1]) > 1e-3


@pytest.mark.parametrize(
    ("name", "version", "inputs"),
    [
        ("ur5_sim", 2, ELBOW),
        ("mechanisms/four_bar", 3, ("*/external_effort",)),
        ("drives/servo_axis", 2, ("*/external_effort", "*/reference_position")),
    ],
)
def test_outputs_change_only_with_inputs_on_which_they_depend(shared_rig, exported, tmp_path, version, name, inputs):
    rig = shared_rig(name)
    with imported(exported(name, version, *inputs), tmp_path / "unzipped") as unit:
        declared = {item.variable.name: {each.name for each in item.dependencies} for item in unit.description.outputs}
        given = [item.name for item in unit.description.modelVariables if item.causality == "input"]
        outputs = tuple(declared)
        unit.begin()
        unit.advance(30)
        changed: dict[str, set[str]] = {name: set() for name in outputs}
        for tried in given:
            before, value = np.array(unit[outputs]), unit[(tried,)][0]
            unit.set(tried, value + 0.01)
            for k in np.flatnonzero(np.array(unit[outputs]) != before):
                changed[outputs[k]].add(tried)
            unit.set(tried, value)
        assert all(changed[name] <= declared[name] for name in outputs)
        assert set().union(*changed.values()) & set(given)
        for joint in rig.joints:  # no loop through the motion of a joint
            assert declared[f"{joint}/position"] == declared[f"{joint}/velocity"] == set()
            efforts = {each for each in given if each.endswith("/external_effort")}
            assert declared[f"{joint}/acceleration"] >= efforts
            assert not declared.get(f"{joint}/command_effort", set()) & efforts


@pytest.mark.parametrize("name", ["rial/external_effort", "rail", "rail/effort", "rail/reference_position"])
def test_inputs_that_there_are_not(shared_rig, said, name):
    said(raised(CosimError, fmu_of, shared_rig(CHAIN), 2, [name]))
