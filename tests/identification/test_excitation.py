"""Designed motions stay within the limits, run, and tell more than random ones."""

from __future__ import annotations

import numpy as np
import pytest

from cosim import load_rig, open_recording
from cosim.apps.identification.excitation import excite
from cosim.apps.identification.identification import identify, known_information
from cosim.apps.identification.loads import Load
from cosim.apps.identification.motion_file import MotionFile
from cosim.apps.identification.variables import choose
from cosim.core.tables.joint_table import TableFile, read_joint_table
from cosim.rig.reading.yaml_source import read_overlay
from tests.identification.conftest import ARM, written
from tests.kit.refusals import refusal


@pytest.fixture(scope="module")
def motion(arm_file):
    rig = load_rig(arm_file)
    return excite(rig, choose(rig, ["inertia", "friction"]), 8.0)


def test_it_stays_within_the_limits_and_begins_and_ends_at_rest(motion):
    assert np.abs(motion.position).max() <= 0.9 * 2.5 + 1e-9
    assert np.abs(motion.velocity).max() <= 0.8 * 6.0 * 1.001
    np.testing.assert_allclose(motion.position[[0, -1]], 0.0, atol=1e-12)
    assert np.abs(motion.velocity[[0, -1]]).max() < 0.02
    np.testing.assert_allclose(np.gradient(motion.position, motion.t, axis=0)[5:-5], motion.velocity[5:-5], atol=0.02)


def test_it_tells_more_than_the_first_random_one(motion):
    best, first = motion.information
    assert best > first + 1.0


def test_efforts_bound_it(tmp_path):
    """The efforts of the arm itself, its friction apart."""
    limits = ARM["joints"]["all"]["limits"] | {"effort": 8.0}
    joints = {"all": ARM["joints"]["all"] | {"limits": limits}, "elbow": ARM["joints"]["elbow"]}
    largest = []
    for path in (written(tmp_path, "weak.yaml", joints=joints), written(tmp_path)):
        rig = load_rig(path, ["mechanism.gravity=[0, 0, 0]"])
        motion = excite(rig, choose(rig, ["inertia"]), 8.0)
        efforts = rig.plant.model.inverse_dynamics(motion.position, motion.velocity, motion.acceleration)
        largest.append(np.abs(efforts).max())
    assert largest[0] < 8.0 < largest[1]


def test_the_command_writes_a_motion_that_can_be_recorded_and_identified(arm_file, truth, tmp_path, command):
    table = tmp_path / "motion.csv"
    out = command.prints("identify", arm_file, "--excite", "--duration", "10", "-o", table)
    assert f"wrote     motion {table}" in out
    overlay = table.with_suffix(".yaml")
    assert f"record it with: cosim run {arm_file} --overlay {overlay} --record F.mcap" in out
    rig = load_rig(arm_file, [*read_overlay(overlay), *read_overlay(truth)])
    run = rig.run(record=tmp_path / "f.mcap")
    assert run.summary["outcome"] == "finished"
    recorded = open_recording(tmp_path / "f.mcap")
    assert np.abs(recorded["elbow/position"]).max() > 0.5
    found = identify(load_rig(arm_file), tmp_path / "f.mcap")
    known = {number.name: number for number in found.numbers}
    assert known["joints.elbow.actuator.coulomb"].value == pytest.approx(1.3, rel=0.02)
    assert known["joints.shoulder.actuator.viscous"].value == pytest.approx(0.9, rel=0.02)


def test_a_start_at_a_limit(arm_file):
    rig = load_rig(arm_file, ["joints.elbow.initial.position=2.5"])
    assert refusal(excite, rig, choose(rig, ["friction"]), 8.0) == (
        f"{arm_file}: joint 'elbow' starts at a limit; set joints.elbow.initial between its limits"
    )


def test_no_controller_of_all_joints(tmp_path):
    from cosim.apps.identification.excitation import overlay_of

    trajectory = {"type": "quintic", "goal": 0.1, "duration": 1}
    controllers = [ARM["controllers"][0] | {"joints": ["shoulder"], "trajectory": trajectory}]
    path = written(tmp_path, controllers=controllers)
    assert refusal(overlay_of, load_rig(path), tmp_path / "motion.csv", 8.0) == (
        f"{path}: no controller moves all joints, which is how the motion is followed; add one"
    )


def test_another_seed_gives_another_motion(arm_file, tmp_path, command):
    """The same one gives the same, to the byte; each file says its own, and is a table like others."""
    texts = {}
    for name, seed in (("plain", ()), ("zero", ("--seed", "0")), ("one", ("--seed", "1"))):
        path = tmp_path / f"{name}.csv"
        command.prints("identify", arm_file, "--excite", "--duration", "6", *seed, "-o", path)
        texts[name] = path.read_text()
    assert texts["plain"] == texts["zero"]
    assert [text.splitlines()[0] for text in texts.values()] == [
        f"# motion of arm, made by cosim identify --excite --duration 6 --seed {seed}" for seed in (0, 0, 1)
    ]
    motions = [
        read_joint_table(TableFile(file=f"{name}.csv"), tmp_path, ["shoulder", "elbow"], "position").values
        for name in ("zero", "one")
    ]
    assert np.abs(np.corrcoef(motions[0][:, 0], motions[1][:, 0])[0, 1]) < 0.9


def test_a_seed_that_is_none(arm_file, recording, command, said):
    given = (("--excite", "--seed", "-1"), (recording, "--seed", "1"))
    said("\n".join(line for words in given for line in command.refuses("identify", arm_file, *words)))


# --- what recordings do not show ---


@pytest.fixture(scope="module")
def lazy(tmp_path_factory):
    """A recording in which the elbow hardly moves, and the rig file."""
    folder = tmp_path_factory.mktemp("lazy")
    path = written(folder)
    motion = "controllers.track.trajectory={type: sine, amplitude: [0.8, 0.12], frequency: [0.43, 0.31], ramp: 1}"
    load_rig(path, [motion, "joints.all.encoder={cpr: 65536}"]).run(record=folder / "lazy.mcap")
    return path, folder


def test_the_next_motion_shows_what_the_recordings_do_not(lazy, command):
    """The numbers that it names are those of the elbow, and with its recording their intervals are smaller."""
    path, folder = lazy
    words = ["identify", path, folder / "lazy.mcap", "--excite", "--duration", "8", "-o", folder / "next.csv"]
    out = command.prints(*words, "--fit", "friction")
    named = [line for line in out.splitlines() if line.startswith("narrower")]
    assert named[0].startswith("narrower  joints.elbow.actuator.")
    keys = [*read_overlay(folder / "next.yaml"), "joints.all.encoder={cpr: 65536}"]
    load_rig(path, keys).run(record=folder / "next.mcap")
    rig = load_rig(path)
    before, after = (
        {number.name: number.interval for number in identify(rig, files, ["friction"]).numbers}
        for files in ([folder / "lazy.mcap"], [folder / "lazy.mcap", folder / "next.mcap"])
    )
    name = named[0].split()[1].removesuffix(":")
    times = float(named[0].rpartition(" becomes ")[2].partition(" times")[0])
    assert times / 3 < before[name] / after[name] < 3 * times


def test_recordings_change_the_motion(lazy, command):
    path, folder = lazy
    plain, beside = folder / "plain.csv", folder / "beside.csv"
    command.prints("identify", path, "--excite", "--duration", "6", "-o", plain)
    command.prints("identify", path, folder / "lazy.mcap", "--excite", "--duration", "6", "-o", beside)
    assert plain.read_text().splitlines()[2:] != beside.read_text().splitlines()[2:]


def test_information_of_recordings_adds_up(lazy):
    """Each counts once; a load that one had is no number of the rig."""
    path, folder = lazy
    rig, wanted, file = load_rig(path), ["friction"], folder / "lazy.mcap"

    def known(*files):
        return known_information(identify(rig, files, wanted), rig, [MotionFile.of(each) for each in files], wanted)

    once, twice = known(file), known(file, file)
    np.testing.assert_allclose(twice.noise, once.noise, rtol=1e-6)
    np.testing.assert_allclose(twice.matrix, 2.0 * once.matrix, rtol=1e-5)
    loaded = known(file, MotionFile(file, Load(0.1, "fore")))
    assert loaded.matrix.shape == once.matrix.shape
    more = loaded.matrix * np.outer(*[1.0 / np.sqrt(np.diag(once.matrix))] * 2)
    assert np.linalg.eigvalsh(more).min() > 0.0
