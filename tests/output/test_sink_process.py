"""The sink processes: they record and publish the same as one process, and their failures do not block a run."""

import gc
import os
import pickle
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import zmq
from mcap.reader import make_reader
from orjson import loads

import cosim.output.remote_sink
from cosim.core.errors import InputError, RunError
from cosim.core.recordings.reader import read_recording
from cosim.output import sink_process
from cosim.output.frame_protocol import FrameKind, decode_ticks, encode_fields, encode_frame, encode_ticks
from cosim.output.remote_sink import RemoteSink
from cosim.output.sink_process import RUN_DIED, _read_frames
from cosim.output.sinks import SinkConfig, open_sinks
from cosim.output.stream.stream_sink import StreamConfig
from cosim.simulation.tick.tick_block import TickBlock, joined
from tests.kit.processes import until
from tests.kit.refusals import raised

ROOT = Path(__file__).parents[2]
MS = 1_000_000
OUTPUT = SinkConfig(
    name="arm",
    channels=(("elbow/position", "rad"), ("elbow/velocity", "rad/s"), ("energy/work", "J"), ("timing/latency", "s")),
    attachments=(("arm.yaml", "name: arm # µ\n".encode()),),
    metadata={"rig": "arm"},
)
COLUMNS = len(OUTPUT.channels)


def samples(k, first=0):
    values = np.random.default_rng(first).standard_normal((k, COLUMNS))
    values[::7, 1] = np.nan
    return (first + np.arange(k, dtype=np.int64)) * MS, values


def recording(path):
    return replace(OUTPUT, record=str(path))


def publishing(endpoint, **settings):
    schema = {"version": 1, "rig": "arm"}
    config = {"signals": OUTPUT.channels, "columns": tuple(range(COLUMNS)), "step_ns": MS, "start_ns": 10**18}
    stream = StreamConfig(endpoint, **{**config, "realtime": False, "schema": schema, "rate": 1000.0, **settings})
    return replace(OUTPUT, stream=stream)


def feed(sink):
    """A short run with every kind of call."""
    for first in range(0, 3000, 500):
        sink(*samples(500, first))
    sink.event(3000 * MS, "elbow latched")
    sink.event(3001 * MS, "tick 3001 was late", "warning")
    sink(*samples(0, 3001))
    sink(*samples(1, 3001))
    sink.fault(3001 * MS, "stopped: Größe \x1b")


def logged(path):
    with open(path, "rb") as file:
        found = [loads(m.data) for _, _, m in make_reader(file).iter_messages(topics=["/log"])]
    return [(m["level"], m["message"]) for m in found]


def kill(remote):
    """Its process, and wait until it has ended, without reaping it."""
    os.kill(remote._process.pid, signal.SIGKILL)
    os.waitid(os.P_PID, remote._process.pid, os.WEXITED | os.WNOWAIT)


def stop(remote):
    os.kill(remote._process.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, remote._process.pid, os.WSTOPPED | os.WNOWAIT)


def go_on(remote):
    os.kill(remote._process.pid, signal.SIGCONT)


@contextmanager
def subscribed(remote, topic):
    """A subscriber of the stream."""
    with zmq.Context() as context, context.socket(zmq.SUB) as subscriber:
        subscriber.setsockopt(zmq.SUBSCRIBE, topic)
        subscriber.connect(remote.endpoint)
        yield subscriber


def refusal(call):
    """The error of a call."""
    return raised((InputError, RunError), call)


@pytest.fixture
def small_pipe(monkeypatch):
    """A pipe that few ticks fill."""
    monkeypatch.setattr(cosim.output.remote_sink, "PIPE_BYTES", 1 << 16)


def test_a_recording_has_the_same_bytes_as_one_of_a_single_process(tmp_path):
    with ExitStack() as stack:
        (sink,) = open_sinks(stack, recording(tmp_path / "here.mcap"))
        feed(sink)
    with RemoteSink(recording(tmp_path / "there.mcap")) as remote:
        feed(remote)
    assert remote.failure == "" and remote.backlog_bytes == 0
    assert (tmp_path / "there.mcap").read_bytes() == (tmp_path / "here.mcap").read_bytes()
    t_ns, values, *_ = read_recording(tmp_path / "there.mcap")
    assert len(t_ns) == 3001 and values.keys() == dict(OUTPUT.channels).keys()
    expected = [(2, "elbow latched"), (3, "tick 3001 was late"), (4, "stopped: Größe \x1b")]
    assert logged(tmp_path / "there.mcap") == expected


def test_arrays_may_have_any_memory_layout_and_change_after_the_call(tmp_path):
    t_ns, values = samples(40)
    wide = np.asfortranarray(np.repeat(values, 2, axis=1))
    times = np.repeat(t_ns, 2)
    with RemoteSink(recording(tmp_path / "a.mcap")) as remote:
        stop(remote)
        remote(times[::2], wide[:, ::2])
        wide[:] = times[:] = -1
        go_on(remote)
    read_ns, read, *_ = read_recording(tmp_path / "a.mcap")
    np.testing.assert_array_equal(read_ns, t_ns)
    for column, (name, _) in enumerate(OUTPUT.channels):
        np.testing.assert_array_equal(read[name], values[:, column])


def test_a_subscriber_receives_samples_during_the_run(tmp_path):
    output, received = publishing(f"ipc://{tmp_path / 'rig'}"), []
    with RemoteSink(output, newest=500) as remote, subscribed(remote, b'{"timestamp"') as subscriber:
        for k in range(500):
            remote(*samples(1, k))
            if subscriber.poll(100):
                received = [loads(subscriber.recv())]
                break
        assert received, "the subscriber received nothing"
    k = received[0]["tick"]
    names = ("position", "velocity")
    expected = [None if np.isnan(value) else value for value in samples(1, k)[1][0].tolist()]
    assert [received[0]["elbow"][name] for name in names] == expected[:2]
    assert (received[0]["n"], received[0]["t"], received[0]["timestamp"]) == (k, k / 1e3, 1e9 + k / 1e3)


def test_a_stream_gets_the_newest_ticks_and_counts_the_others(tmp_path, small_pipe):
    """A process that does not read stands for one that is too slow. At 2 Hz what the pipe and the backlog hold are a
    few samples: the queue of the socket takes them at once."""
    output = publishing(f"ipc://{tmp_path / 'rig'}", rate=2.0)
    with RemoteSink(output, newest=1000) as remote, subscribed(remote, b"") as subscriber:
        assert subscriber.poll(60_000)  # the schema: it has joined
        stop(remote)
        for first in range(0, 300_000, 500):
            remote(*samples(500, first))
            assert remote.backlog_bytes < 1000 * 8 * (1 + COLUMNS) + 1000
        remote.event(300_000 * MS, "a")  # is not dropped
        go_on(remote)
        remote(*samples(1, 300_000))
        missed = remote.missed
        assert missed > 200_000 and missed % 500 == 0
        received = [loads(subscriber.recv())]
        for _ in range(500):
            if received[-1].get("tick") == 300_000:
                break
            remote.describe({})  # writes the backlog on
            assert subscriber.poll(60_000)
            received.append(loads(subscriber.recv()))
    assert received[-1]["tick"] == 300_000 and received[-1]["missed"] == missed
    assert "a" in [m["event"] for m in received if "event" in m]


STALLED = """
import sys
import zmq
subscriber = zmq.Context().socket(zmq.SUB)
subscriber.setsockopt(zmq.RCVHWM, 10)
subscriber.subscribe(b"")
subscriber.connect(sys.argv[1])
subscriber.poll()
print(flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory of another process by /proc")
def test_stalled_subscribers_cost_no_memory_however_long_the_run_lasts(tmp_path):
    """One that connects and never reads; after the queues are full, as many ticks again add nothing. The queue of the
    kernel is short for a file."""
    with RemoteSink(publishing(f"ipc://{tmp_path / 'rig'}"), newest=100_000) as remote:
        program = [sys.executable, "-c", STALLED, remote.endpoint]
        stalled = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            while not select.select([stalled.stdout], [], [], 0.01)[0]:
                remote.describe({})
            held = []
            for first in range(0, 60_000, 500):
                remote(*samples(500, first))
                while remote.backlog_bytes > 1 << 16:  # as a run in real time would
                    time.sleep(1e-3)
                    remote(*samples(0))
                if first % 15_000 == 14_500:
                    pages = Path(f"/proc/{remote._process.pid}/statm").read_text().split()[1]
                    held.append(int(pages) * resource.getpagesize())
        finally:
            stalled.kill()
            stalled.communicate()
    assert remote.missed == 0
    assert held[-1] - held[1] < 1 << 20, held


def test_nothing_of_a_stream_fails_the_run(tmp_path):
    remote = RemoteSink(publishing(f"ipc://{tmp_path / 'rig'}"), newest=1000)
    kill(remote)
    remote(*samples(10))
    assert remote.failure.endswith("the publisher ended unexpectedly (signal 9); the end of the run is not published")
    remote.close()


def test_a_stalled_stream_is_ended_soon(tmp_path, monkeypatch):
    monkeypatch.setattr(cosim.output.remote_sink, "STREAM_TIMEOUT", 0.1)
    remote = RemoteSink(publishing(f"ipc://{tmp_path / 'rig'}"), newest=1000)
    stop(remote)
    remote.close()
    assert "the publisher made no progress for 0.1 s and was terminated" in remote.failure


def test_the_schema_is_repeated_while_nothing_happens(tmp_path):
    output = publishing(f"ipc://{tmp_path / 'rig'}")
    with RemoteSink(output, newest=1000) as remote, subscribed(remote, b'{"schema"') as subscriber:
        assert subscriber.poll(60_000)
        schema = loads(loads(subscriber.recv())["schema"])
        assert schema == {"version": 1, "rig": "arm", "signals": dict(OUTPUT.channels)}
        remote.describe({**schema, "state": "ended"})
        while schema.get("state") != "ended":
            assert subscriber.poll(60_000)
            schema = loads(loads(subscriber.recv())["schema"])


ODD = b"missing\xff/\xfe.mcap".decode(errors="surrogateescape")


@pytest.mark.parametrize("name", ["missing/a.mcap", "", ODD, "/dev/full"], ids=ascii)
def test_a_file_that_cannot_be_created_raises_the_same_error_as_in_one_process(tmp_path, said, name):
    output = recording(tmp_path / name)
    with ExitStack() as stack:
        here = refusal(lambda: open_sinks(stack, output))
    there = refusal(lambda: RemoteSink(output))
    assert (type(there), str(there), there.place) == (type(here), str(here), output.record)
    said(ascii(str(there)))


def test_a_port_in_use_raises_the_same_error_as_in_one_process(tmp_path, said):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        endpoint = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        error = refusal(lambda: RemoteSink(replace(publishing(endpoint), record=str(tmp_path / "a.mcap"))))
    said(error, r"(?<=127.0.0.1:)\d+")
    assert error.place == endpoint


def test_the_sink_process_imports_no_heavy_packages():
    heavy = {"casadi", "llvmlite", "matplotlib", "scipy", "yaml", "typer", "rich", "cosim.rig", "cosim.core.compile"}
    script = f"import sys, cosim.output.sink_process\nprint(*({heavy} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_a_stopped_sink_process_blocks_nothing_and_gets_all_ticks_later(tmp_path, small_pipe):
    with RemoteSink(recording(tmp_path / "a.mcap")) as remote:
        stop(remote)
        backlog = []
        for first in range(0, 6_000, 1_000):
            remote(*samples(1_000, first))
            backlog.append(remote.backlog_bytes)
        assert (np.diff(backlog[2:]) == 1_000 * 8 * (COLUMNS + 1) + len(encode_frame(FrameKind.VALUES))).all()
        assert remote.failure == ""
        go_on(remote)
    assert remote.backlog_bytes == 0
    t_ns, values, *_ = read_recording(tmp_path / "a.mcap")
    np.testing.assert_array_equal(t_ns, np.arange(6_000) * MS)
    np.testing.assert_array_equal(values["energy/work"][-1_000:], samples(1_000, 5_000)[1][:, 2])


def test_later_calls_write_the_backlog(tmp_path, small_pipe):
    with RemoteSink(recording(tmp_path / "a.mcap")) as remote:
        stop(remote)
        for first in range(0, 4_000, 1_000):
            remote(*samples(1_000, first))
        assert remote.backlog_bytes > 0
        go_on(remote)
        for k in range(4_000, 9_000):
            remote(*samples(1, k))
            if not remote.backlog_bytes:
                break
            select.select([], [remote._in], [], 60)
        assert remote.backlog_bytes == 0
    np.testing.assert_array_equal(read_recording(tmp_path / "a.mcap")[0], np.arange(k + 1) * MS)


def test_a_sink_process_without_progress_is_terminated_and_lost_ticks_are_reported(tmp_path, monkeypatch, said):
    remote = RemoteSink(recording(tmp_path / "a.mcap"))
    monkeypatch.setattr(cosim.output.remote_sink, "TIMEOUT", 0.1)
    stop(remote)
    for first in range(0, 90_000, 30_000):
        remote(*samples(30_000, first))  # more than a pipe takes
    error = refusal(remote.close)
    said(error)
    assert remote.failure == str(error)


@pytest.mark.parametrize("end", [stop, kill])
def test_what_the_file_lacks_at_the_end_is_counted_in_the_file(tmp_path, monkeypatch, said, end):
    path = tmp_path / "a.mcap"
    remote = RemoteSink(recording(path))
    monkeypatch.setattr(cosim.output.remote_sink, "TIMEOUT", 0.1)
    remote(*samples(600))
    remote.fault(600 * MS, "on the disk")
    until(lambda: read_recording(path).log)
    stop(remote)
    remote(*samples(100, 600))
    if end is kill:
        kill(remote)
    said(refusal(remote.close))


def test_a_recording_that_cannot_be_read_back_is_not_counted(tmp_path, monkeypatch, said):
    path = tmp_path / "a.mcap"
    remote = RemoteSink(recording(path))
    monkeypatch.setattr(cosim.output.remote_sink, "TIMEOUT", 0.1)
    stop(remote)
    remote(*samples(100))
    path.unlink()
    said(refusal(remote.close))


@pytest.mark.parametrize("sign", ["_unread", "_size"])
def test_a_sink_process_that_makes_slow_progress_is_waited_for(tmp_path, monkeypatch, sign):
    """It takes bytes or writes some; in the end it does neither."""
    remote = RemoteSink(recording(tmp_path / "a.mcap"))
    monkeypatch.setattr(cosim.output.remote_sink, "TIMEOUT", 0.05)
    stop(remote)
    values = iter(range(10))
    monkeypatch.setattr(cosim.output.remote_sink, sign, lambda _: next(values, 10))
    assert "the recorder made no progress" in str(refusal(remote.close))
    assert next(values, None) is None


def test_a_stall_of_the_whole_machine_is_no_hanging_process(tmp_path, monkeypatch):
    """The process had no time to make progress: a look counts LOOK at most."""
    remote = RemoteSink(recording(tmp_path / "a.mcap"))
    remote(*samples(100))
    stop(remote)
    looks = count()

    def monotonic():
        if (look := next(looks)) == 4:
            go_on(remote)
        return 1000.0 * look

    monkeypatch.setattr(cosim.output.remote_sink, "LOOK", 0.01)
    monkeypatch.setattr(cosim.output.remote_sink.time, "monotonic", monotonic)
    remote.close()
    assert len(read_recording(tmp_path / "a.mcap")[0]) == 100


@pytest.mark.parametrize("output", [recording("a.mcap"), publishing("ipc://rig")], ids=["recorder", "publisher"])
def test_a_killed_sink_process_is_reported_by_the_next_call_and_by_close(tmp_path, monkeypatch, said, output):
    monkeypatch.chdir(tmp_path)
    remote = RemoteSink(output)
    remote(*samples(10))
    kill(remote)
    assert remote.failure == ""
    remote(*samples(10, 10))
    said(remote.failure)
    for _ in range(3):
        remote(*samples(10, 20))
        remote.event(30 * MS, "more")
        remote.fault(30 * MS, "and more")
    assert remote.backlog_bytes == 0
    error = refusal(remote.close)
    said(error)
    assert str(error) == remote.failure
    remote.close()


def test_a_disk_that_fills_up_does_not_stop_the_run_and_close_raises(tmp_path, said):
    path = tmp_path / "a.mcap"
    with pytest.raises(RunError) as error, RemoteSink(recording(path)) as remote:
        pid = remote._process.pid
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (200_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
        for first in range(0, 20_000, 1000):
            remote(*samples(1000, first))
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        remote(*samples(1, 20_000))
        assert remote.failure != ""
        remote(*samples(1, 20_001))
    said(error.value)
    assert str(error.value) == remote.failure
    assert 0 < len(read_recording(path)[0]) < 20_000


def test_an_unexpected_error_is_reported_in_one_line(tmp_path):
    remote = RemoteSink(recording(tmp_path / "a.mcap"))
    remote.event(0, "a level that does not exist", "grave")
    error = str(refusal(remote.close))
    assert error.startswith("the output failed: KeyError: 'grave' (")
    assert "\n" not in error and "recording_formats.py:" in error


def test_values_of_another_shape_raise_in_the_process_of_the_run(tmp_path):
    with RemoteSink(recording(tmp_path / "a.mcap")) as remote:
        with pytest.raises(ValueError, match=r"values are \(3, 2\), not \(3, 4\)"):
            remote(np.arange(3), np.zeros((3, 2)))
        remote(*samples(5))
    assert len(read_recording(tmp_path / "a.mcap")[0]) == 5


def test_a_call_after_close_raises(tmp_path, said):
    remote = RemoteSink(recording(tmp_path / "a.mcap"))
    remote.close()
    remote.close()
    said(refusal(lambda: remote(*samples(1))))


DYING = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_sink_process import RemoteSink, recording, samples
remote = RemoteSink(recording(sys.argv[1]))
for first in range(0, 900, 100):
    remote(*samples(100, first))
assert remote.backlog_bytes == 0
os._exit(1)
"""


def test_a_run_that_dies_leaves_a_complete_file_with_an_error_event(tmp_path):
    path = tmp_path / "a.mcap"
    # its output ends when the recorder process ends, which inherits it
    done = subprocess.run([sys.executable, "-c", DYING, path], cwd=ROOT, capture_output=True)
    assert (done.returncode, done.stderr) == (1, b"")
    t_ns, values, *_ = read_recording(path)
    np.testing.assert_array_equal(t_ns, np.arange(900) * MS)
    np.testing.assert_array_equal(values["energy/work"][-100:], samples(100, 800)[1][:, 2])
    assert logged(path) == [(4, RUN_DIED)]


def test_signals_that_end_the_run_do_not_end_the_sink_process(tmp_path):
    with RemoteSink(recording(tmp_path / "a.mcap")) as remote:
        pid = remote._process.pid
        assert os.getpgid(pid) != os.getpgid(0)
        assert os.getpriority(os.PRIO_PROCESS, pid) > os.getpriority(os.PRIO_PROCESS, 0)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(pid, number)
        remote(*samples(20))
    assert len(read_recording(tmp_path / "a.mcap")[0]) == 20


def test_the_priority_is_lowered_when_the_sinks_are_open(monkeypatch):
    """Before, the run waits for it: at a low priority a busy machine would take minutes."""
    order = []
    monkeypatch.setattr(sink_process, "open_sinks", lambda stack, config: order.append("opened") or [])
    (source, give), (take, destination) = os.pipe(), os.pipe()
    fields = pickle.dumps((OUTPUT, None))
    os.write(give, encode_frame(FrameKind.START, fields))
    os.close(give)
    sink_process.serve(source, destination, lambda: order.append("lowered"))
    assert order == ["opened", "lowered"]
    for end in (source, take, destination):
        os.close(end)


def test_interrupts_neither_lose_nor_repeat_ticks(tmp_path):
    class Interrupt(Exception):
        pass

    def interrupt(*_):
        raise Interrupt

    path, handed, interrupts = tmp_path / "a.mcap", [], 0
    with RemoteSink(recording(path)) as remote:
        previous = signal.signal(signal.SIGALRM, interrupt)
        gc.disable()  # an exception inside a collection is swallowed
        try:
            for k in count():
                if k > 1000 and interrupts > 20:
                    break
                try:
                    t_ns, values = samples(2, 2 * k)
                    signal.setitimer(signal.ITIMER_REAL, 1e-6 * (1 + k % 60))
                    remote(t_ns, values)
                    handed.append(k)
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except Interrupt:
                    interrupts += 1
        finally:
            with suppress(Interrupt):
                signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, previous)
            gc.enable()
    t_ns, _, *_ = read_recording(path)
    whole = t_ns.reshape(-1, 2) // (2 * MS)
    assert (whole == whole[:, :1]).all()
    recorded = whole[:, 0].tolist()
    assert recorded == sorted(set(recorded))
    assert set(handed) <= set(recorded)


def test_ticks_that_wait_are_evaluated_together(tmp_path):
    """Of a process that was late, so that it catches up: a block costs as much as hundreds of ticks."""
    block = TickBlock(np.arange(2), np.ones((2, 3)), np.zeros((2, 0), dtype=np.int64), np.zeros(4))
    event = encode_frame(FrameKind.EVENT, encode_fields((0, "lock", "info")))
    blocks = [replace(block, numbers=block.numbers + 2 * k) for k in range(6)]
    blocks[4:] = [replace(each, bumpless_start=np.ones(4)) for each in blocks[4:]]
    frames = [encode_frame(FrameKind.TICKS, *encode_ticks(each)) for each in blocks]
    source, destination = os.pipe()
    os.write(destination, b"".join([*frames[:2], event, *frames[2:]]))
    os.close(destination)
    read = list(_read_frames(source, lambda: None))
    os.close(source)
    assert [(kind, len(bodies)) for kind, bodies in read] == [
        *((FrameKind.TICKS, 2), (FrameKind.EVENT, 1), (FrameKind.TICKS, 4))
    ]
    whole = joined([decode_ticks(body) for body in read[-1][1]])
    assert [each.numbers.tolist() for each in whole] == [[4, 5, 6, 7], [8, 9, 10, 11]]  # of two starts
