"""What a run keeps of its signals: the same numbers in every store, in bounded memory, and the summary of all ticks."""

from __future__ import annotations

import subprocess
import sys
import time
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cosim import compare, load_run
from cosim.core.errors import RunError
from cosim.core.growing_table import SpillingTable
from cosim.execution import paced
from cosim.output.signal_store import KeptTicks, SignalStore
from cosim.output.store_file import StoreFile
from cosim.rig.rig import Rig
from cosim.rig.run import run_recorder
from cosim.rig.run.run import StoppedRun
from cosim.rig.run.run_file import KILLED
from cosim.rig.run.run_recorder import WaitingTicks
from tests.kit.disk import small_disk
from tests.kit.refusals import raised, refusal
from tests.rig.test_parameters import ARM

ROOT = Path(__file__).parents[2]
TICKS = 20_001
BUDGET = "1.4 MB"  # less than the signals, more than a block


@pytest.fixture(scope="module")
def rig(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    return Rig.from_dict({**ARM, "schedule": {"duration": 20.0}}, folder)


@pytest.fixture(scope="module")
def everything(rig):
    return rig.run()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("COSIM_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def summary_without_speed(run):
    return {key: value for key, value in run.summary.items() if key != "speed"}


@pytest.mark.parametrize(
    ("keep", "rows", "signals"),
    [
        ("all", slice(None), None),
        ("final", slice(-1, None), None),
        ({"last": "2 s"}, slice(-2001, None), None),
        ({"last": "2 s", "every": 10}, slice(-2001, None, 10), None),
        ({"every": 7}, slice(None, None, 7), None),
        ({"signals": ["*/position", "en*/work"]}, slice(None), ["shoulder/position", "elbow/position", "energy/work"]),
        ({"budget": BUDGET}, slice(None), None),
        ({"budget": BUDGET, "every": 2, "signals": ["el*", "sh*"]}, slice(None, None, 2), ...),
        ({"file": "FOLDER/a.run"}, slice(None), None),
    ],
)
def test_every_store_has_the_same_numbers_and_the_same_summary(rig, everything, tmp_path, keep, rows, signals):
    if isinstance(keep, dict) and "file" in keep:
        keep = {"file": keep["file"].replace("FOLDER", str(tmp_path))}
    run = rig.run(keep=keep)
    names = [name for name in everything.signals if name[:2] in ("el", "sh")] if signals is ... else signals
    names = list(everything.signals) if names is None else names
    assert list(run.signals) == list(run.units) == names
    np.testing.assert_array_equal(run.t, everything.t[rows])
    for name in names:
        np.testing.assert_array_equal(run[name], everything[name][rows])
    assert summary_without_speed(run) == summary_without_speed(everything)


@pytest.mark.parametrize(
    "keep", [{"last": "2 s", "every": 10}, {"budget": BUDGET, "every": 2, "signals": ["el*", "sh*"]}], ids=str
)
def test_what_is_kept_is_shown_compared_and_saved_as_any_run(rig, tmp_path, keep):
    run = rig.run(keep=keep)
    assert run.plot().axes and len(run.to_pandas()) == len(run.t)
    assert compare(run, run).identical
    for suffix in ("npz", "run"):
        run.save(tmp_path / f"saved.{suffix}")
        again = load_run(tmp_path / f"saved.{suffix}")
        np.testing.assert_array_equal(again.values, run.values)
        assert again.summary == run.summary and again.signals == run.signals


def test_a_run_beyond_its_budget_is_on_the_disk_and_the_file_goes_with_it(rig, everything, cache):
    run = rig.run(keep={"budget": BUDGET})
    (file,) = (cache / "runs").iterdir()
    assert isinstance(run.values, np.memmap) and file.stat().st_size > everything.values.nbytes
    assert compare(everything, run).identical
    values = run.values
    del run
    assert not file.exists()
    np.testing.assert_array_equal(values, everything.values)


def test_a_run_of_unknown_length_goes_on_in_the_file(everything, tmp_path):
    n = everything.values.shape[1]
    kept = KeptTicks(signals=n, columns=None, every=1, last=None, budget=200_000, expected=100)
    store = SignalStore(kept, lambda: StoreFile(tmp_path / "a.run", 1 + n, {}))
    for begin in range(0, TICKS, 700):
        block = everything.values[begin : begin + 700]
        store.room(len(block))[:] = block
        store.add(np.arange(begin, begin + len(block)), everything.t[begin : begin + len(block)])
        assert (store.file is None) == (8 * (1 + n) * (begin + 700) <= 200_000)
    t, values = store.arrays()
    store.file.close()
    np.testing.assert_array_equal(t, everything.t)
    np.testing.assert_array_equal(values, everything.values)


def test_the_rig_may_say_what_is_kept(everything):
    rig = Rig.from_dict({**ARM, "schedule": {"duration": 0.1}, "keep": {"every": 50, "signals": ["elbow/position"]}})
    run = rig.run()
    np.testing.assert_array_equal(run["elbow/position"], everything["elbow/position"][:101:50])
    assert len(rig.run(keep="all").signals) == len(everything.signals)


def test_a_long_run_stays_within_its_budget(rig, tmp_path):
    """25 MB of signals, of which little is in memory, also while they are plotted, saved and compared."""
    compare(rig.run(0.1), rig.run(0.1)), rig.run(0.1).plot()  # imports
    tracemalloc.start()
    try:
        run = rig.run(150.0, keep={"budget": "2 MB"})
        run.plot(file=tmp_path / "a.png")
        run.save(tmp_path / "a.run")
        assert compare(run, load_run(tmp_path / "a.run")).identical
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert run.values.nbytes > 25e6 > 2.0 * most
    assert len(run.t) == 150_001 and np.isfinite(run["elbow/effort"]).all() and run.summary["ticks"] == 150_000


# in a process of its own: what earlier tests have freed, an allocation takes without new memory
LIMITED = """
import resource
from pathlib import Path
from cosim import Rig, compare
from tests.rig.test_parameters import ARM

rig = Rig.from_dict({**ARM, "schedule": {"duration": 20.0}})
rig.run(0.1)
used = int(Path("/proc/self/status").read_text().partition("VmData:")[2].split()[0]) << 10
resource.setrlimit(resource.RLIMIT_DATA, (used + 25_000_000,) * 2)
try:
    rig.run(300.0, keep={"budget": "500 MB"})
except MemoryError:
    print("none left")
run = rig.run(300.0, keep={"budget": "2 MB"})
print(compare(run, run).identical, run.values.nbytes > 50e6, run.summary["ticks"])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the memory of a process by /proc")
def test_a_long_run_takes_no_native_memory_beside_its_budget():
    """50 MB of signals, with 25 MB of memory of any kind: what Python does not allocate counts too."""
    done = subprocess.run([sys.executable, "-c", LIMITED], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["none left", "True True 300000"], done.stderr


def test_waiting_ticks_of_a_real_time_run_are_on_the_disk_beyond_their_memory(rig, monkeypatch):
    scheduler = rig.scheduler()
    with scheduler:
        scheduler.prepare()
        scheduler.arm()
        scheduler.start(3000)
        blocks = list(iter(scheduler.read, None))
    waiting = WaitingTicks(memory=50_000)
    for block in blocks:
        waiting.add(block)
    assert waiting._table is not None and waiting._table._in_file > 2000
    found = list(waiting.take())
    assert len(found) < len(blocks) and max(len(block.numbers) for block in found) <= run_recorder.WAITING_BLOCK
    for name in ("numbers", "rows"):
        whole = [np.concatenate([getattr(block, name) for block in each]) for each in (found, blocks)]
        np.testing.assert_array_equal(*whole)
    assert found[0].failures == blocks[0].failures and not list(waiting.take())


def test_a_real_time_run_with_rows_and_stamps_on_the_disk(everything, monkeypatch):
    moved, move = [], SpillingTable._move

    def noted(table):
        move(table)
        moved.append(table._in_file)

    monkeypatch.setattr(SpillingTable, "_move", noted)
    monkeypatch.setattr(paced, "STAMP_BYTES", 1000)
    monkeypatch.setattr(WaitingTicks.__init__, "__defaults__", (1000,))
    run = Rig.from_dict({**ARM, "schedule": {"duration": 0.3, "realtime": {"overrun": "catch_up"}}}).run()
    assert len(moved) >= 2
    np.testing.assert_array_equal(run["elbow/position"], everything["elbow/position"][:301])
    np.testing.assert_array_equal(run.timing.numbers, np.arange(301))
    summary = run.summary["timing"]
    assert isinstance(run.timing.stamps, np.memmap) and summary["ticks"] == 301
    assert 0.0 < summary["tasks"]["step"]["median_s"] == np.nanmedian(run["timing/step"])


def test_a_table_that_finds_the_disk_full_stays_in_memory(tmp_path):
    with small_disk(tmp_path) as disk:
        table = SpillingTable(10, np.int64, 100_000, lambda: disk)
        rows = np.arange(200_000).reshape(-1, 10)
        for begin in range(0, len(rows), 500):
            table.append(rows[begin : begin + 500])
        assert len(table) == len(rows) and 0 < table._in_file < len(rows)
        np.testing.assert_array_equal(table.rows(), rows)
        table.close()


DYING = """
import sys
from cosim.rig.rig import Rig
from tests.rig.test_parameters import ARM
rig = Rig.from_dict({**ARM, "schedule": {"duration": 1e5}})
rig.run(keep={"file": sys.argv[1], "signals": eval(sys.argv[2])})
"""


@pytest.mark.parametrize("signals", [(), ("elbow/position",)])
def test_the_file_of_a_killed_run_is_a_run(everything, tmp_path, signals):
    path = tmp_path / "a.run"
    with subprocess.Popen([sys.executable, "-c", DYING, path, repr(signals)], cwd=ROOT) as process:
        while not path.exists() or path.stat().st_size < 1_000_000:
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
    run = load_run(path)
    k = min(len(run.t), TICKS)
    assert k > 5000 and run.fault == run.summary["outcome"] == KILLED
    np.testing.assert_array_equal(run.t[:k], everything.t[:k])
    np.testing.assert_array_equal(run["elbow/position"][:k], everything["elbow/position"][:k])
    assert (run.summary["joints"] == {}) == bool(signals)


def test_a_full_disk_stops_the_run_and_keeps_what_was_written(rig, everything, tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=10**15))
    with small_disk(tmp_path) as disk:
        stopped = raised(StoppedRun, rig.run, keep={"file": str(disk / "a.run")})
        what = "cannot write the signals of the run: No space left on device"
        assert f"{disk / 'a.run'}: {what}" in str(stopped)
        run = stopped.run
        assert 1000 < len(run.t) < TICKS
        np.testing.assert_array_equal(run.values, everything.values[: len(run.t)])
        again = load_run(disk / "a.run")
        np.testing.assert_array_equal(again["elbow/effort"], run["elbow/effort"])


@pytest.mark.parametrize(
    "keep",
    [
        "most",
        {"every": 0},
        {"evry": 2},
        {"signals": ["elbow/pos"]},
        {"file": "a.npz"},
        {"file": "a.run", "last": 1},
        {"budget": "1 kB"},
        {"last": "15 s", "budget": "2 MB"},
        {"file": "missing/a.run"},
    ],
    ids=str,
)
def test_mistakes(rig, said, keep, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said(refusal(rig.run, keep=keep))


def test_a_run_that_does_not_fit_the_disk(rig, said, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=10**9))
    said(refusal(rig.run, 1e5, keep={"budget": BUDGET}))


@pytest.mark.parametrize("content", [b"", b"cosimrun", b"cosimrun" + bytes(8), b"name: arm\n" * 9])
def test_a_file_that_is_no_run_is_refused(tmp_path, said, content):
    (tmp_path / "a.run").write_bytes(content)
    said(refusal(load_run, tmp_path / "a.run"))


def test_a_run_is_not_saved_over_its_own_signals(rig, said, tmp_path):
    run = rig.run(1.0, keep={"file": str(tmp_path / "a.run")})
    said(refusal(run.save, tmp_path / "a.run"))


def test_a_run_is_saved_whole_or_not(everything, tmp_path):
    with small_disk(tmp_path) as disk:
        with pytest.raises(RunError, match=r"No space left on device; free space on the disk and run again$"):
            everything.save(disk / "a.run")
        assert not (disk / "a.run").exists()
