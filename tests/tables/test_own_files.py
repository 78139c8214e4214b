"""Recordings and exports of this program as references, efforts, identification and comparison of the next run, with
joints of odd names."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cosim import Rig, Run, load_rig, load_run
from cosim.apps.identification.excitation import ExcitingMotion
from cosim.apps.identification.recorded_motion import read_motion
from cosim.control.feedforward_table import FeedforwardTable
from cosim.core.tables.joint_table import TableFile, read_joint_table
from cosim.core.tables.options import TableOptions
from cosim.core.types import Array
from cosim.rig.run.comparison import compare
from cosim.rig.run.export import FORMATS, SUFFIXES, export_run, selection_of
from cosim.rig.run.measured_log import measured_log, run_or_log
from tests.kit.refusals import refusal

ODD = (
    *("elbow", "Elbow", "ELBOW 2", "t", "time", "position", "q", "1", "2", "1e5", "nan", "inf", "-", "_"),
    *(
        "arm_deg",
        "arm [deg]",
        "(x) (mm)",
        "a,b",
        "a;b",
        'say "so"',
        "it's",
        "#1",
        "% of",
        "|",
        "a:b=c",
        "Gelenk ä 日本 🤖",
    ),
    f"long {'n' * 90}",
)
ENCODINGS = {
    "protobuf": {},
    "json": {"encoding": "json"},
    "float32": {"numbers": "float32"},
    "split": {"split_time": 1},
}
FILES = (*FORMATS, *ENCODINGS, "npz")


def named(suffix: str) -> str:
    """A file in this format."""
    return f"run{SUFFIXES.get(suffix, f'.{suffix}')}"


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Rig:
    folder = tmp_path_factory.mktemp("odd")
    bodies = [
        {"name": f"b{k}", "parent": "base", "joint": name, "axis": [0, 1, 0], "mass": 1, "com": [0.1, 0, 0],
         "inertia": [0.01, 0.02 + 1e-3 * k, 0.02]}
        for k, name in enumerate(ODD)
    ]  # fmt: skip
    amplitude = (0.1 + 0.01 * np.arange(len(ODD))).tolist()
    controller = {"name": "c", "type": "pid", "kp": 40, "ki": 0, "kd": 3, "joints": list(ODD)}
    controller["trajectory"] = {"type": "sine", "amplitude": amplitude, "frequency": 1.3}
    text = {"name": "odd", "mechanism": {"bodies": bodies}, "controllers": [controller]}
    text["schedule"] = {"step": "10 ms", "duration": 2.4}
    (folder / "rig.yaml").write_text(json.dumps(text, ensure_ascii=False))
    return load_rig(folder / "rig.yaml")


@pytest.fixture(scope="module")
def run(rig: Rig) -> Run:
    return rig.run()


@pytest.fixture(scope="module")
def files(rig: Rig, run: Run, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("files")
    found: dict[str, Path] = {}
    for name, keys in ENCODINGS.items():
        found[name] = folder / f"{name}.mcap"
        overrides = [f"recording.{key}={value}" for key, value in keys.items()]
        load_rig(rig.spec.source.file, overrides).run(record=found[name])
    for suffix in FORMATS:
        found[suffix] = folder / named(suffix)
        export_run(selection_of(run), suffix, found[suffix])
    found["npz"] = folder / "run.npz"
    run.save(found["npz"])
    return found


def signals(run: Run, what: str) -> Array:
    return np.column_stack([run[f"{joint}/{what}"] for joint in ODD])


def assert_same(file: str, found: Array, expected: Array) -> None:
    """To the bit, or to the precision of what is stored."""
    assert found.shape == expected.shape
    if file == "float32":
        np.testing.assert_array_equal(found, expected.astype(np.float32))
    else:
        np.testing.assert_array_equal(found, expected)


def test_there_are_as_many_odd_names() -> None:
    assert len(set(ODD)) == 27


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("what", ["position", "velocity", "effort"])
def test_a_reference(file: str, what: str, files: dict[str, Path], run: Run) -> None:
    """Of the same quantity, in the order of the joints of a controller."""
    path, joints = files[file], ODD[::-1]
    table = read_joint_table(TableFile(file=path.name), path.parent, joints, what)
    assert table.notes == ()
    np.testing.assert_array_equal(table.t, run.t)
    assert_same(file, table.values[:, ::-1], signals(run, what))


@pytest.mark.parametrize("file", FILES)
def test_a_run_follows_the_motion_of_another(file: str, files: dict[str, Path], rig: Rig, run: Run) -> None:
    path = files[file]
    keys = json.dumps({"type": "waypoints", "file": str(path), "feedforward": {"file": str(path)}})
    next_rig = load_rig(rig.spec.source.file, [f"controllers.c.trajectory={keys}", "schedule.duration=0.05"])
    reference = signals(next_rig.run(), "reference_position")
    np.testing.assert_allclose(reference, signals(run, "position")[: len(reference)], atol=1e-6)


@pytest.mark.parametrize("file", FILES)
def test_identification(file: str, files: dict[str, Path], rig: Rig, run: Run) -> None:
    motion = read_motion(rig, files[file], ["effort"])
    assert motion.joints == ODD and motion.source == "effort" and motion.notes == ()
    np.testing.assert_array_equal(motion.t, run.t)
    assert_same(file, motion.position, signals(run, "position"))
    assert_same(file, motion.drive, signals(run, "effort"))


@pytest.mark.parametrize("file", FILES)
def test_comparison(file: str, files: dict[str, Path], run: Run) -> None:
    found = compare(run, run_or_log(files[file], run))
    assert {f"{joint}/{what}" for joint in ODD for what in ("position", "velocity", "effort")} <= set(found.signals)
    largest = max(difference.max for difference in found.signals.values())
    assert largest < 1e-5 if file == "float32" else largest == 0.0


@pytest.mark.parametrize("file", FILES)
def test_a_recording_as_a_log(file: str, files: dict[str, Path], run: Run) -> None:
    log = measured_log(files[file], run)
    assert_same(file, np.column_stack([log[f"{joint}/position"] for joint in ODD]), signals(run, "position"))


def test_a_part_of_a_run_that_is_exported(run: Run, tmp_path: Path) -> None:
    chosen = selection_of(run, ["*/position"], 0.3, 0.6)
    export_run(chosen, "csv", tmp_path / "part.csv")
    table = read_joint_table(TableFile(file="part.csv"), tmp_path, ODD, "position")
    np.testing.assert_array_equal(table.values, signals(run, "position")[chosen.rows.start : chosen.rows.stop])
    assert FeedforwardTable(file="part.csv").topic is None


def test_a_run_that_is_saved_is_compared(run: Run, tmp_path: Path) -> None:
    run.save(tmp_path / "run.npz")
    assert compare(run, run_or_log(tmp_path / "run.npz", run)).identical
    table = read_joint_table(TableFile(file="run.npz"), tmp_path, ODD, "position")
    np.testing.assert_array_equal(table.values, signals(run, "position"))
    assert load_run(tmp_path / "run.npz").joints == ODD


def test_a_designed_motion_is_read_by_all(run: Run, rig: Rig, tmp_path: Path) -> None:
    """Its columns are the joints alone, which in a log are positions; one of a joint `t` has two columns `t`."""
    joints = tuple(joint for joint in ODD if joint != "t")
    q = signals(run, "position")[:, [ODD.index(joint) for joint in joints]]
    motion = ExcitingMotion(joints, run.t, q, q, q, (0.0, 0.0), np.ones(0))
    path = tmp_path / "motion.csv"
    path.write_text("# motion of odd\n" + motion.table())
    for what in ("position", "effort"):
        table = read_joint_table(TableFile(file=path.name), tmp_path, joints[::-1], what)
        np.testing.assert_allclose(table.values[:, ::-1], q, rtol=1e-8)
    log = measured_log(path, run)
    assert set(log.signals) == {f"{joint}/position" for joint in joints}
    assert max(compare(run, log).signals[f"{joint}/position"].max for joint in joints) < 1e-8
    (note,) = log.notes
    assert note.endswith(" are taken as the position; to be certain, give columns.elbow: elbow")


@pytest.mark.parametrize(
    ("quantity", "other", "factor"),
    [("position", "deg", 180.0 / np.pi), ("position", "turn", 0.5 / np.pi), ("effort", "mN*m", 1e3),
     ("velocity", "rpm", 30.0 / np.pi), ("velocity", "", 3.0), ("position", "", 1.0)],
)  # fmt: skip
def test_a_log_in_another_unit_is_said(quantity: str, other: str, factor: float, run: Run, tmp_path: Path) -> None:
    """Where it is alike the run; and read right where the unit is given."""
    own, path = run[f"elbow/{quantity}"], tmp_path / "log.csv"
    values = factor * own * (1.0 + 0.02 * np.random.default_rng(0).standard_normal(len(own)))
    np.savetxt(path, np.column_stack([run.t, values]), "%.12g", ",", header=f"t,elbow/{quantity}", comments="")
    notes = measured_log(path, run).notes
    assert len(notes) == bool(other)
    for note in notes:
        assert note.startswith(f"elbow/{quantity} is {factor:.3g}"[: len(quantity) + 10])
        key, unit = note.rpartition("units.")[2].split("=")
        assert (key, unit) == (f"elbow/{quantity}", other)
        given = measured_log(path, run, TableOptions(units={key: unit}))
        assert given.notes == ()
        np.testing.assert_allclose(given[f"elbow/{quantity}"], values / factor, rtol=1e-9, atol=1e-9)


def test_a_log_of_one_time_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("t,elbow/position\n1.7,0\n1.7,0.1\n")
    words = refusal(measured_log, tmp_path / "log.csv", run)
    assert words.endswith("has 1 row at a time of its own; two or more are needed, with times of enough digits")


PADDED = (" a2", "a3 ", "  a 4", "\ta5")


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("joint", PADDED)
def test_a_joint_with_blanks_around_it(joint: str, suffix: str, tmp_path: Path) -> None:
    """As robot files can have it; cells of a text lose them."""
    shape = (
        f'<link name="base"/><link name="l"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" '
        f'ixz="0" iyz="0"/></inertial></link><joint name="{joint}" type="continuous"><parent link="base"/>'
        f'<child link="l"/><axis xyz="0 0 1"/></joint>'
    )
    (tmp_path / "r.urdf").write_text(f'<robot name="r">{shape}</robot>')
    rig = {"mechanism": {"urdf": "r.urdf"}, "schedule": {"step": "10 ms", "duration": 0.3}}
    (tmp_path / "rig.yaml").write_text(json.dumps(rig))
    run = load_rig(tmp_path / "rig.yaml").run()
    export_run(selection_of(run), suffix, tmp_path / named(suffix))
    table = read_joint_table(TableFile(file=named(suffix)), tmp_path, run.joints, "position")
    np.testing.assert_array_equal(table.values[:, 0], run[f"{run.joints[0]}/position"])
    assert compare(run, run_or_log(tmp_path / named(suffix), run)).signals
