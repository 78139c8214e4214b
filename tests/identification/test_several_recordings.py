"""Several recordings in one fit, others that check it, loads, offsets and gains."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cosim import load_rig, open_recording
from cosim.apps.identification.blocks import about_centre, about_frame
from cosim.apps.identification.identification import identify
from cosim.apps.identification.loads import Load, load_of
from cosim.apps.identification.motion_file import MotionFile
from cosim.apps.identification.report import report_page
from cosim.core.errors import InputError
from cosim.rig.reading.yaml_source import overrides_of, read_overlay
from tests.identification.conftest import TRUTH
from tests.identification.test_mistakes import table_of
from tests.kit.refusals import refusal

OTHER = "controllers.track.trajectory={type: sine, amplitude: [1.0, 0.6], frequency: [0.31, 0.83], ramp: 1}"
FAST = "controllers.track.trajectory={type: sine, amplitude: [0.8, 1.1], frequency: [0.5, 0.82], ramp: 1}"
LOAD = np.array([1.2, 0.35, 0.02, -0.05, 2e-3, 3e-3, 4e-3, 0.0, 0.0, 0.0])  # mass, centre, inertia in the frame of fore


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("several")


def recorded(arm_file, truth, folder, name, *overrides):
    path = folder / f"{name}.mcap"
    if not path.exists():
        load_rig(arm_file, [*read_overlay(truth), *overrides]).run(record=path)
    return path


@pytest.fixture
def others(arm_file, truth, folder):
    return [recorded(arm_file, truth, folder, name, words) for name, words in (("other", OTHER), ("fast", FAST))]


@pytest.fixture
def loaded(arm_file, truth, folder):
    """The same arm with a load on its fore arm."""
    fore = TRUTH["mechanism.numbers.fore"]
    own = np.array([fore["mass"], *fore["com"], *fore["inertia"], 0.0, 0.0, 0.0])
    both = np.asarray(about_centre(about_frame(own) + about_frame(LOAD)), dtype=float).tolist()
    text = f"mechanism.numbers.fore={{mass: {both[0]}, com: {both[1:4]}, inertia: {both[4:]}}}"
    return recorded(arm_file, truth, folder, "loaded", text)


def signals(path):
    """Columns of a table of a recording."""
    run = open_recording(path)
    names = [f"{joint}/{what}" for joint in run.joints for what in ("position", "current")]
    return {"t": np.asarray(run.t)} | {name: run[name].copy() for name in names}


def numbers(found):
    return {number.name: number for number in found.numbers}


def test_several_recordings_are_one_fit(arm, recording, others):
    alone, together = identify(arm, recording), identify(arm, [recording, others[0]], check=[others[1]])
    assert together.failure == ""
    training, rest = together.sample_numbers
    assert training > 1.5 * alone.sample_numbers[0]
    assert [of.training == len(of.t) for of in together.unexplained] == [True, True, False]
    assert rest == len(together.unexplained[2].t)
    assert together.residual(training=False).whole < 0.01
    name = "joints.elbow.actuator.coulomb"
    assert numbers(together)[name].value == pytest.approx(1.3, rel=5e-3)
    assert together.estimate.clusters == 2 * alone.estimate.clusters or together.estimate.clusters >= 10


def test_what_is_faster_than_in_training_is_said(arm, recording, others):
    found = identify(arm, recording, ["friction"], check=[others[1]])
    assert "elbow" in found.extrapolations
    assert any(line.startswith("beyond    elbow is ") for line in found.lines())


def test_a_known_load_is_found_with_its_arm(arm, recording, loaded):
    """The load changes its link in one recording; centre of mass and inertia of both are found."""
    found = identify(
        arm, [recording, MotionFile(loaded, Load(1.2, "fore"))], ["inertia", "friction"], check=[recording]
    )
    values = found.variables.split(found.values)[-1]
    assert found.variables.titles[-1] == "load of 1.2 kg@fore"
    moment = values[0] * values[1:4]
    np.testing.assert_allclose(moment[[0, 2]], 1.2 * LOAD[[1, 3]], atol=0.01)
    assert found.residual(training=True).whole < 0.01
    assert numbers(found)["load of 1.2 kg@fore.mass"].value == 1.2
    assert not any(name.startswith("load") for name in found.overlay())
    without = identify(arm, [recording, loaded], ["inertia", "friction"], check=[recording])
    assert without.residual(training=True).whole > 3.0 * found.residual(training=True).whole


def test_a_load_makes_gains_known(arm, recording, loaded, folder):
    """Currents that are 20 % too small at one joint: with a load of known mass its gain is found."""

    def smaller(path):
        columns = signals(path)
        columns["elbow/current"] *= 0.8
        return table_of(folder / f"{path.stem}.csv", columns)

    files = [smaller(recording), MotionFile(smaller(loaded), Load(1.2, "fore"))]
    found = identify(arm, files, ["inertia", "friction", "gain"], check=[files[0]])
    assert numbers(found)["gain.elbow"].value == pytest.approx(1.25, rel=0.02)
    assert numbers(found)["gain.shoulder"].value == pytest.approx(1.0, rel=0.02)


def test_an_offset_of_a_signal_is_found(arm, recording, folder):
    columns = signals(recording)
    columns["elbow/current"] += 0.3
    path = table_of(folder / "offset.csv", columns)
    found = identify(arm, path, ["inertia", "friction", "offset"])
    number = numbers(found)["offset.elbow"]
    assert (number.unit, number.before) == ("A", 0.0)
    assert number.value == pytest.approx(0.3, abs=max(0.01, number.interval))
    assert not any("offset" in key for key in found.overlay())


def test_the_command_takes_several_files(arm_file, recording, others, loaded, command, folder):
    figures = folder / "f.json"
    words = [others[0], f"{loaded}:load=1.2 kg@fore", "--check", others[1], "--offset", "--json", figures]
    code, out, error = command("identify", arm_file, recording, *words)
    assert (code, error) == (0, [])
    data = json.loads(figures.read_text())
    assert data["recordings"] == [str(path) for path in (recording, others[0], loaded, others[1])]
    assert data["check"]["relative_residual"] < 0.02
    assert set(data["check"]["joints"]) == {"shoulder", "elbow"}
    assert data["training"]["relative_residual"] < 0.02
    assert "residual  " in out


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("fore", "give a mass and the link"),
        ("2 m@fore", "unit 'm' does not fit"),
        ("-1 kg@fore", "give a mass above 0"),
    ],
)
def test_a_load_that_is_none_is_refused(text, wrong):
    with pytest.raises(InputError, match=wrong):
        load_of(text, "a.csv")


def test_a_load_on_no_link_is_refused(arm, recording):
    assert "no link or frame 'for' carries the load; did you mean 'fore'?" in refusal(
        identify, arm, MotionFile(recording, Load(1.0, "for"))
    )


# --- the same recording twice ---


@pytest.fixture
def logs(recording, others, folder):
    """The recordings as tables, one of which has a row that is rubbish."""
    files = {}
    for name, path in (("first", recording), ("second", others[0])):
        columns = signals(path)
        columns["elbow/position"][500] += 40.0 * (name == "second")
        files[name] = table_of(folder / f"{name}.csv", columns)
    return files


def test_notes_begin_with_the_file_of_several(arm, logs):
    alone = identify(arm, logs["second"], ["friction"]).notes
    assert alone[0].startswith("1 row with positions that no motion has is left out: line 502")
    named = [f"{logs['second']}: {note}" for note in alone]
    for found in (
        identify(arm, [logs["first"], logs["second"]], ["friction"]),
        identify(arm, logs["first"], ["friction"], check=[logs["second"]]),
    ):
        assert found.notes == found.as_json()["notes"] == named
        assert next(iter(found.lines())) == f"note      {named[0]}"


@pytest.mark.parametrize("part", ["training", "check"])
@pytest.mark.parametrize("way", ["the path", "another path", "a link", "with a load"])
def test_a_file_is_given_once(way, part, arm_file, logs, tmp_path, monkeypatch, command):
    path = logs["first"]
    other = {"the path": path, "another path": f"{path.parent}/../{path.parent.name}/{path.name}"}.get(way)
    if way == "a link":
        other = tmp_path / "link.csv"
        other.symlink_to(path)
    elif way == "with a load":
        other = f"{path}:load=1 kg@fore"
    words = (path, logs["second"], other) if part == "training" else (logs["second"], path, "--check", other)
    (line,) = command.refuses("identify", arm_file, *words)
    assert ("is given twice" if part == "training" else "checks nothing") in line
    assert str(path) in line


COPIES = {
    "all": (lambda n: slice(None), 1.0),
    "a part": (lambda n: slice(n // 4, n // 2), 1.0),
    "most of it": (lambda n: slice(n // 2, n), None),
}


@pytest.mark.parametrize("copied", COPIES)
@pytest.mark.parametrize("part", ["training", "check"])
def test_equal_rows_under_another_name_are_said(copied, part, arm, recording, others, folder):
    rows = signals(recording)
    begin = COPIES[copied][0](len(rows["t"]))
    columns = {name: values[begin] for name, values in rows.items()}
    if copied == "most of it":  # and something else
        rest = signals(others[0])
        columns = {name: np.concatenate([values, rest[name][:3000]]) for name, values in columns.items()}
    columns["t"] = 1e-3 * np.arange(len(columns["t"])) + 7.0
    path = table_of(folder / "copy.csv", columns)
    files = [recording, path] if part == "training" else [recording]
    found = identify(arm, files, ["friction"], check=[path] if part == "check" else [others[1]])
    (line,) = found.repeated
    share = 100.0 if COPIES[copied][1] else 100.0 * 6001 / 9001
    assert float(line.partition(" %")[0]) == pytest.approx(share, abs=1.0)
    assert line.endswith("counts twice; leave one out" if part == "training" else "checks nothing; give another one")
    assert next(iter(found.lines())) == f"warning   {line}" and found.as_json()["notes"][0] == line


def test_recordings_of_equal_motions_are_no_copies(arm, recording, arm_file, truth, folder):
    """Increments of encoders make it another one."""
    again = recorded(arm_file, truth, folder, "again", "joints.all.encoder={cpr: 65536}")
    assert identify(arm, recording, ["friction"], check=[again]).repeated == ()


# --- drives that cannot be right ---


@pytest.mark.parametrize("factor", [1e3, 1e-3, 1.3])
def test_drives_in_another_unit_are_said(factor, arm, recording, folder):
    columns = signals(recording)
    columns["elbow/current"] *= factor
    found = identify(arm, table_of(folder / "scaled.csv", columns), ["friction"])
    said = [line for line in found.lines() if line.startswith("warning")]
    assert len(said) == (factor != 1.3)
    for line in said:
        assert "elbow/current is " in line and "such as mA" in line
        ratio = float(line.partition("elbow/current is ")[2].partition(" times")[0])
        assert ratio == pytest.approx(factor, rel=0.5)  # the rig has other numbers, too


def test_a_motion_without_drives_determines_nothing(arm, recording, folder, said):
    columns = signals(recording)
    for joint in ("shoulder", "elbow"):
        columns[f"{joint}/current"] *= 0.0
    words = refusal(identify, arm, table_of(folder / "none.csv", columns))
    said(words.replace(str(folder), "<folder>"))


# --- recordings that only check ---


def test_the_numbers_of_a_rig_are_judged_by_recordings_alone(arm_file, truth, recording, others):
    """What they leave is what the fit said of the same numbers, and no number is found."""
    arm = load_rig(arm_file)
    fitted = identify(arm, recording, ["inertia", "friction"], check=others)
    overlaid = load_rig(arm_file, overrides_of(fitted.overlay()))
    judged = identify(overlaid, [], cutoff=fitted.cutoff, check=others)
    assert judged.is_judged
    assert judged.residual(training=False).whole == pytest.approx(fitted.residual(training=False).whole, rel=1e-6)
    assert judged.numbers == []
    assert not judged.failure
    assert judged.as_json()["training"]["relative_residual"] != judged.as_json()["check"]["relative_residual"]
    page = report_page(judged).content().decode()
    assert "No number is found" in page
    lines = list(judged.lines())
    assert any("2 joints" in line and "no number is found" in line for line in lines)
    assert lines[-1].startswith("residual")


def test_a_rig_that_explains_too_little_is_a_failure(arm_file, others, said):
    wrong = load_rig(arm_file, ["mechanism.numbers.fore.mass=5", "joints.elbow.actuator.coulomb=9"])
    failure = identify(wrong, [], check=others[:1]).failure
    said(failure)


@pytest.mark.parametrize("words", ["-o a.yaml", "--friction ladder", "--method output-error"])
def test_what_needs_a_recording_to_find_numbers_from(arm_file, others, command, said, words):
    said(command.refuses("identify", arm_file, *words.split(), "--check", others[0]))
