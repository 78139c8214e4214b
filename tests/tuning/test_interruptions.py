"""Sessions that end at any point: kills, Ctrl-C and full disks lose nothing that was found."""

import os
import random
import re
import shutil
import signal
import time
import traceback
from pathlib import Path
from pkgutil import resolve_name

import pytest

from benchmarks.paired_timing import QUICK
from benchmarks.rows import BenchCase, measure_case
from cosim import FailedTuning, RunError, tune
from cosim.apps.tuning.session_folder import read_trials
from cosim.execution.posix_signals import interrupted, raise_on_termination, termination_signals
from tests.kit.disk import small_disk
from tests.kit.refusals import raised
from tests.tuning.textbook import turntable

GIVEN = {"parameters": {"arm.kp": "10..1000", "arm.kd": "1..100"}, "optimiser": "de", "trials": 40, "batch": 4}
RESULTS = ("trials.jsonl", "gains.yaml")


def begin_or_go_on(rig, folder: Path):
    begun = (folder / "session.json").exists()
    return tune(rig, folder=folder, resume=True) if begun else tune(rig, folder=folder, **GIVEN)


def results(folder: Path) -> list[bytes]:
    return [(folder / name).read_bytes() for name in RESULTS]


@pytest.fixture(scope="module")
def rig():
    return turntable()


@pytest.fixture(scope="module")
def whole(rig, tmp_path_factory):
    """The folder of a session that nothing disturbs."""
    folder = tmp_path_factory.mktemp("whole") / "s"
    tune(rig, folder=folder, **GIVEN)
    return folder


def is_killed(rig, folder: Path, seconds: float) -> bool:
    """Whether a process that works on the session in the folder is killed before it has ended."""
    pid = os.fork()
    if pid == 0:
        signal.setitimer(signal.ITIMER_REAL, seconds)  # its signal has no handler: it ends as with SIGKILL
        try:
            begin_or_go_on(rig, folder)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code in (0, -signal.SIGALRM)
    return code != 0


def test_a_session_that_is_killed_at_any_time_ends_as_if_it_had_not_been(rig, whole, tmp_path):
    """While its folder is created, its trials run and are written, and at its report; six kills of several sessions."""
    begin = time.monotonic()
    is_killed(rig, tmp_path / "first", 600.0)
    seconds, kills, sessions = time.monotonic() - begin, 0, 0
    times = random.Random(1)
    while kills < 6:
        folder = tmp_path / f"{sessions}"
        while kills < 6 and is_killed(rig, folder, times.uniform(1e-4, 0.6 * seconds)):
            kills += 1
        begin_or_go_on(rig, folder)
        assert results(folder) == results(whole)
        assert (folder / "report.html").read_bytes().endswith(b"</html>")
        sessions += 1


def test_a_folder_whose_creation_was_killed_is_begun_anew(rig, whole, tmp_path):
    """It has files of the rig, but no header."""
    shutil.copytree(whole / "rig", tmp_path / "s" / "rig")
    (tmp_path / "s" / "trials.jsonl").touch()
    (tmp_path / "s" / ".session.json").write_text('{"rig": "turnt')
    tune(rig, folder=tmp_path / "s", **GIVEN)
    assert results(tmp_path / "s") == results(whole)


# --- Ctrl-C ---------------------------------------------------------------------------------------------

# where Ctrl-C comes -> after so many calls
CALLS = {
    "evaluation.TrialEvaluator.evaluate": 2,
    "session_folder.SessionFolder.append": 2,
    "session.write_report": 0,
    "session.write_gains": 0,
}


@pytest.mark.parametrize("place", CALLS)
@pytest.mark.parametrize("when", ["before", "after"])
def test_ctrl_c_anywhere_keeps_everything_and_says_how_to_go_on(rig, whole, tmp_path, monkeypatch, place, when):
    real, calls = resolve_name(f"cosim.apps.tuning.{place}"), []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) > 1 + CALLS[place]:  # the results are written once more
            return real(*arguments)
        now = len(calls) == 1 + CALLS[place]
        if now and when == "before":
            signal.raise_signal(signal.SIGINT)
        found = real(*arguments)
        if now:
            signal.raise_signal(signal.SIGINT)
        return found

    with monkeypatch.context() as changed, pytest.raises(FailedTuning) as failed:
        changed.setattr(f"cosim.apps.tuning.{place}", interrupted)
        tune(rig, folder=tmp_path / "s", **GIVEN)
    n = len(read_trials(tmp_path / "s"))
    found = failed.value.session.found
    assert failed.value.session.trials == read_trials(tmp_path / "s") and found is not None
    best = f"the best is trial {found.number} with the cost {found.outcome.cost:.6g}"
    fix = f"go on with --resume --session {tmp_path / 's'}"
    assert str(failed.value) == f"tune: interrupted after {n - 1} of 40 trials, {best}; {fix}"
    assert failed.value.exit_code == 1 and "gains" in failed.value.session.written
    begin_or_go_on(rig, tmp_path / "s")
    assert results(tmp_path / "s") == results(whole)


def test_ctrl_c_before_the_first_trial(rig, tmp_path, monkeypatch, said):
    monkeypatch.setattr("cosim.apps.tuning.session.load_optimiser", lambda *_: signal.raise_signal(signal.SIGINT))
    said(raised(FailedTuning, tune, rig, folder=tmp_path / "s", **GIVEN))
    with pytest.raises(FailedTuning, match=r"^tune: interrupted after 0 of 40 trials$"):
        tune(rig, **GIVEN)


def test_another_signal_is_named(rig, monkeypatch):
    """Such as a time limit sends."""
    before = {number: signal.getsignal(number) for number in termination_signals()}
    monkeypatch.setattr("cosim.apps.tuning.session.load_optimiser", lambda *_: signal.raise_signal(signal.SIGTERM))
    raise_on_termination()
    try:
        with pytest.raises(FailedTuning, match=r"^tune: interrupted by SIGTERM after 0 of 40 trials$") as failed:
            tune(rig, **GIVEN)
        row = BenchCase("session", "", lambda budget: tune(rig, **GIVEN))
        with pytest.raises(KeyboardInterrupt):  # it ends the bench, and is no failure of a row
            measure_case(row, QUICK)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert interrupted(failed.value.__cause__) == "interrupted by SIGTERM"


def test_a_folder_with_a_space_is_quoted(rig, tmp_path, monkeypatch):
    monkeypatch.setattr("cosim.apps.tuning.session.load_optimiser", lambda *_: signal.raise_signal(signal.SIGINT))
    with pytest.raises(FailedTuning, match=re.escape(f"--session '{tmp_path}/my session'") + "$"):
        tune(rig, folder=tmp_path / "my session", **GIVEN)


# --- a full disk ----------------------------------------------------------------------------------------


def test_a_full_disk_keeps_what_was_found(rig, whole, tmp_path):
    with small_disk(tmp_path) as disk:
        folder, filler = disk / "s", disk / "filler"
        filler.write_bytes(bytes(_room(disk) - 40_000))
        with pytest.raises(FailedTuning) as failed:
            tune(rig, folder=folder, **GIVEN)
        trials = read_trials(folder)
        found = failed.value.session.found
        assert failed.value.session.trials == trials and found is not None and failed.value.exit_code == 1
        best = f"the best is trial {found.number} with the cost {found.outcome.cost:.6g}"
        pattern = r"(trials\.jsonl: cannot write the trials|report\.html: cannot write the report)"
        text = rf"tune: interrupted after {len(trials) - 1} of 40 trials, {best}: {folder}/{pattern}: No space left on"
        fix = f" device; free space on the disk and run again; go on with --resume --session {folder}"
        assert re.fullmatch(text + re.escape(fix), str(failed.value))
        filler.unlink()
        begin_or_go_on(rig, folder)
        assert results(folder) == results(whole)


def test_a_full_disk_in_the_middle_of_a_line(rig, whole, tmp_path):
    """The last page of the disk ends within a trial, which is lost alone."""
    with small_disk(tmp_path) as disk:
        folder, filler = disk / "s", disk / "filler"
        with pytest.raises(FailedTuning):
            tune(rig, folder=folder, progress=_fill_after(2, filler), **GIVEN)
        data = (folder / "trials.jsonl").read_bytes()
        assert not data.endswith(b"\n") and 9 <= len(read_trials(folder)) < 41
        filler.unlink()
        begin_or_go_on(rig, folder)
        assert results(folder) == results(whole)


def _fill_after(batches: int, filler: Path):
    done = []

    def fill(_session) -> None:
        done.append(1)
        if len(done) == batches:
            filler.write_bytes(bytes(_room(filler.parent)))

    return fill


def _room(disk: Path) -> int:
    status = os.statvfs(disk)
    return status.f_bavail * status.f_bsize


def test_a_disk_without_room_for_the_folder(rig, tmp_path):
    with small_disk(tmp_path) as disk:
        (disk / "filler").write_bytes(bytes(_room(disk)))
        with pytest.raises(RunError) as failed:
            tune(rig, folder=disk / "s", **GIVEN)
        what = "cannot write the session: No space left on device; free space on the disk and run again"
        assert str(failed.value) == f"{disk}/s: {what}"
        (disk / "filler").unlink()
        tune(rig, folder=disk / "s", **{**GIVEN, "trials": 4})
