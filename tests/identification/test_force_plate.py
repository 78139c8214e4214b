"""A leg whose foot slides over a force plate: the measured force is in its equation of motion."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import yaml

from cosim import Rig, load_rig
from cosim.apps.identification.identification import identify
from cosim.apps.identification.motion_file import MotionFile
from cosim.core.types import Array
from cosim.mechanics.multibody.contact_dynamics import contact_efforts, measured_efforts
from tests.identification.pendulum import write
from tests.kit.messages import Said
from tests.kit.refusals import refusal

LEG = {
    "name": "leg",
    "mechanism": {
        "ground": {"friction": 0.3, "xyz": [0, 0, -0.78]},
        "bodies": [
            {"name": "thigh", "joint": "hip", "mass": 2.0, "com": [0.01, 0, -0.15], "axis": [0, 1, 0],
             "inertia": [0.02, 0.02, 0.01]},
            {"name": "shank", "parent": "thigh", "joint": "knee", "origin": {"xyz": [0, 0, -0.4]}, "mass": 1.0,
             "com": [0.02, 0, -0.12], "axis": [0, 1, 0], "inertia": [0.01, 0.01, 0.005]},
        ],
        "contacts": [
            {"name": "foot", "link": "shank", "sphere": 0.03, "at": [0, 0, -0.4], "with": "ground", "stiffness": 3e3},
        ],
    },
    "joints": {"all": {"actuator": {"type": "ideal"}, "limits": {"velocity": 20, "effort": 200}}},
    "controllers": [
        {"type": "pid", "kp": 80, "ki": 0, "kd": 6,
         "trajectory": {"type": "sine", "amplitude": [0.7, 0.9], "frequency": [0.43, 0.71], "ramp": 1}},
    ],
    "schedule": {"step": "0.5 ms", "duration": 24},
}  # fmt: skip
TRUTH = {
    "thigh": {"mass": 2.6, "com": [-0.02, 0, -0.2], "inertia": [0.02, 0.03, 0.01]},
    "shank": {"mass": 1.4, "com": [0.0, 0, -0.17], "inertia": [0.01, 0.02, 0.005]},
}
STEP = 0.5e-3  # s
SIGNALS = [f"{what}_{axis}" for what in ("force", "point") for axis in "xyz"]


def leg(folder: Path, numbers: Mapping | None = None) -> Rig:
    spec = copy.deepcopy(LEG)
    for body in spec["mechanism"]["bodies"]:
        body |= (numbers or {}).get(body["name"], {})
    path = folder / ("true.yaml" if numbers else "leg.yaml")
    path.write_text(yaml.safe_dump(spec))
    return load_rig(path)


@pytest.fixture(scope="module")
def columns(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Array]:
    """Of a log of the true leg, with the noise of encoders."""
    run, random = leg(tmp_path_factory.mktemp("leg"), TRUTH).run(), np.random.default_rng(0)
    touching = run["foot/normal_force"] > 0.0
    assert 0.2 < touching.mean() < 0.8 and run["foot/normal_force"].max() > 50.0
    found = {"t": run.t}
    for joint in ("hip", "knee"):
        found[f"{joint}/position"] = run[f"{joint}/position"] + random.normal(0.0, 1e-5, len(run.t))
        found[f"{joint}/effort"] = run[f"{joint}/effort"]
    return found | {f"foot/{signal}": run[f"foot/{signal}"] for signal in SIGNALS}


def logged(folder: Path, columns: dict[str, Array]) -> MotionFile:
    """A log of a run: an effort acts over the step after its row, and a force is the mean of the step before."""
    return MotionFile(write(folder / "log.csv", columns), delay=0.5 * STEP, force_delay=0.5 * STEP)


def true_base() -> dict[str, float]:
    """The combinations of numbers that two joints of one plane show."""
    of = {
        link: (m, m * np.array(n["com"]), n["inertia"][1] + m * (n["com"][0] ** 2 + n["com"][2] ** 2))
        for link, n in TRUTH.items()
        for m in [n["mass"]]
    }
    (_, s_thigh, J_thigh), (m, s_shank, J_shank) = of["thigh"], of["shank"]
    return {
        "Jyy(thigh) + 0.16 m(shank)": J_thigh + 0.16 * m,
        "mx(thigh)": s_thigh[0],
        "mz(thigh) − 0.4 m(shank)": s_thigh[2] - 0.4 * m,
        "Jyy(shank)": J_shank,
        "mx(shank)": s_shank[0],
        "mz(shank)": s_shank[2],
    }


@pytest.mark.parametrize("moment", [False, True])
def test_the_numbers_of_a_leg_follow_from_its_motion_and_the_force_of_its_foot(
    tmp_path: Path, columns: dict[str, Array], moment: bool
) -> None:
    if moment:  # the same wrench by a force that acts elsewhere, and a moment
        arm = np.array([0.1, 0.0, -0.05])
        force = np.column_stack([columns[f"foot/force_{axis}"] for axis in "xyz"])
        moments = np.cross(-arm, force)
        moved = {f"foot/point_{axis}": columns[f"foot/point_{axis}"] + arm[k] for k, axis in enumerate("xyz")}
        columns = columns | moved | {f"foot/moment_{axis}": moments[:, k] for k, axis in enumerate("xyz")}
    found = identify(leg(tmp_path), logged(tmp_path, columns))
    base = {number.name: number for number in found.base if number.of_links}
    assert not found.failure and base.keys() == true_base().keys()
    for name, true in true_base().items():
        # times the interval: filters leave a little of forces that rise within 50 ms
        assert abs(base[name].value - true) < 1.5 * base[name].interval < max(5e-3 * abs(true), 5e-4), name


def test_without_the_force_the_recording_is_refused(tmp_path: Path, columns: dict[str, Array], said: Said) -> None:
    rig, path = leg(tmp_path), tmp_path / "log.csv"
    for lacking in ("foot/force_x", "foot/point_z"):
        file = write(path, {name: values for name, values in columns.items() if name != lacking})
        said(refusal(identify, rig, file))
    none = load_rig(rig.spec.path, ["mechanism.contacts=[]"])
    wrong = identify(none, write(path, columns))
    base = {number.name: number for number in wrong.base}
    assert abs(base["mz(shank)"].value + 0.238) > 0.1  # as if nothing had touched


@pytest.mark.parametrize("spin", ["", ", torsional: 5e-3, rolling: 2e-3"])
def test_measured_forces_act_as_the_forces_of_points(tmp_path: Path, spin: str) -> None:
    """Of contacts with the ground and of two links, in any posture."""
    text = (
        "mechanism:\n  bodies:\n"
        "    - {name: a, joint: one, axis: [0, 1, 0.2], mass: 1, inertia: [0.1, 0.1, 0.1]}\n"
        "    - {name: b, parent: a, joint: two, origin: {xyz: [0.3, 0, 0.1]}, axis: [1, 0, 0], mass: 1,"
        " inertia: [0.1, 0.1, 0.1]}\n"
        "    - {name: c, parent: base, joint: three, origin: {xyz: [0, 1, 0]}, axis: [0, 0, 1], mass: 1,"
        " inertia: [0.1, 0.1, 0.1]}\n  contacts:\n"
        f"    - {{name: floor, link: b, box: [0.2, 0.1, 0.3], with: ground, friction: 0.5{spin}}}\n"
        f"    - {{name: both, link: b, sphere: 0.1, with: {{link: c, sphere: 0.2}}, friction: 0.5{spin}}}\n"
        "schedule: {step: 1 ms}\n"
    )
    (tmp_path / "rig.yaml").write_text(text)
    equations, random = load_rig(tmp_path / "rig.yaml").plant.model.equations, np.random.default_rng(1)
    contacts = equations.constraints.contacts
    for _ in range(5):
        q, forces = random.normal(size=3), random.normal(size=contacts.size)
        _, placed = equations.placements(equations.q_map.positions(q), np.zeros(3), 0.0)
        points = contacts.points(placed)
        wrenches = np.zeros((2, 6))
        for k, (_, own) in enumerate(contacts.by_contact):
            for j in own:
                force, moment = contacts.along_ground(points[j], forces[contacts.at(j)])
                wrenches[k] += [*force, *(moment + np.cross(points[j].position, force))]
        expected = contact_efforts(equations, q, forces)
        assert np.abs(expected).max() > 0.1
        np.testing.assert_allclose(measured_efforts(equations, q, wrenches), expected, atol=1e-12)


def test_simulated_runs_have_contacts_themselves(tmp_path: Path, columns: dict[str, Array]) -> None:
    """Output error needs no force, though its search begins at what equation error finds where it has one."""
    file = write(tmp_path / "log.csv", {name: of for name, of in columns.items() if not name.startswith("foot")})
    found = identify(leg(tmp_path, TRUTH), file, ("mechanism.shank.mass",), method="output-error")
    assert found.estimate.values == pytest.approx([TRUTH["shank"]["mass"]], rel=1e-3)
