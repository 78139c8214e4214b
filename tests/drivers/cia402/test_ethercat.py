"""CiA 402 over EtherCAT: the driver, pysoem and simulated slaves at the two ends of a virtual Ethernet link."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cosim.core.types import JointCommand, JointState
from cosim.plugins.drivers import cia402
from cosim.plugins.drivers.cia402.ethercat import EthercatLink
from cosim.plugins.drivers.transport import now
from cosim.rig.emulate import emulation_of
from cosim.rig.rig import Rig, load_rig
from cosim.rig.sections.rig_spec import read_rig
from tests.conformance.families import PATIENCE, rig, write_rig
from tests.drivers.bench import refused
from tests.kit.clock import MS

pytest.importorskip("pysoem", reason="pysoem is not installed")
ROOT = Path(__file__).parents[3]
START = np.array([-0.1 / 2 + 0.3, 0.2])  # of the joints
PUSH = 0.02  # N·m at the drive
WATCHDOG = 1.0  # s


def why_not() -> str:
    """Why this machine has no virtual Ethernet link, empty if it has one."""
    if shutil.which("ip") is None or not hasattr(socket, "AF_PACKET"):
        return "no command 'ip' or no raw sockets"
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()
    except PermissionError:
        return "raw sockets are not permitted"
    return ""


@pytest.fixture(scope="module")
def link() -> Iterator[tuple[str, str]]:
    """Two interfaces, joined."""
    if reason := why_not():
        pytest.skip(reason)
    number = os.getpid() % 10_000_000
    ends = f"ea{number}", f"eb{number}"
    made = subprocess.run(["ip", "link", "add", ends[0], "type", "veth", "peer", "name", ends[1]], capture_output=True)
    if made.returncode:
        pytest.skip(f"no virtual Ethernet link: {made.stderr.decode().strip()}")
    for end in ends:
        subprocess.run(["ip", "link", "set", end, "up"], check=True)
    yield ends
    subprocess.run(["ip", "link", "del", ends[0]], check=True)


class Slaves:
    """The process of simulated slaves."""

    def __init__(self, interface: str, settings: dict) -> None:
        words = [sys.executable, "-m", "tests.drivers.cia402.ethercat_slave", interface, "2", json.dumps(settings)]
        self._process = subprocess.Popen(
            words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ)
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def ask(self, word: str = "state", k: int = 0, value: str = "-") -> dict[str, float]:
        """A command to slave k; the state of its motor."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{word} {k} {value}\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    @property
    def efforts(self) -> list[float]:
        return [self.ask(k=k)["effort"] for k in range(2)]

    def close(self) -> None:
        self._process.communicate(timeout=PATIENCE)


class Bench:
    def __init__(self, folder: Path, interface: str, mode: str, ids=(1, 2), **limits) -> None:
        driver = {"type": "cia402", "mode": mode, "ethercat": {"interface": interface}, "watchdog": WATCHDOG}
        data = rig(driver, [{"id": id} for id in ids])
        data["joints"]["b"]["limits"].update(limits)
        spec = read_rig(write_rig(folder / "rig.yaml", data))
        made = Rig(spec, interpret=True)
        (context,) = made.contexts.values()
        self.driver, self.out = cia402.load(spec.drivers[0].plugin.params, context), JointState.zeros(2)
        self.mode = mode

    def until(self, seen, command: bool = True, **fields) -> None:
        """Repeat a command, or only read, until the condition is met."""
        end_ns, cmd = now() + round(PATIENCE * 1e9), JointCommand.zeros(2)
        while not seen():
            assert now() < end_ns, self.out
            for name, value in fields.items():
                getattr(cmd, name)[:] = value
            cmd.valid_until_ns = now() + 1000 * MS
            if command:
                self.driver.write(cmd, now() + 100 * MS)
            self.driver.read(self.out, now() + 100 * MS)

    def words(self) -> list[str]:
        return [self.driver.describe_fault(k, int(code)) for k, code in enumerate(self.out.fault)]


UNITS = {"encoder_resolution": 131072, "feed_constant": 36000, "velocity_unit": "mrpm"}


@pytest.fixture(scope="module", params=[{}], ids=["ordinary"])
def segment(request, link) -> Iterator[Slaves]:
    """Parameter: settings of the drives."""
    made = Slaves(link[1], request.param)
    yield made
    made.close()


@pytest.fixture
def slaves(segment) -> Slaves:
    segment.ask("restart")
    return segment


@pytest.fixture
def bench(tmp_path, link, slaves) -> Iterator[Callable[..., Bench]]:
    """bench(mode) -> the drives, enabled; closed afterwards."""
    made: list[Bench] = []

    def make(mode: str = "effort") -> Bench:
        made.append(Bench(tmp_path, link[0], mode))
        made[-1].driver.open()
        made[-1].driver.enable(mode)
        return made[-1]

    yield make
    for each in made:
        each.driver.close()


real_time = pytest.mark.real_time


@real_time
def test_an_effort_moves_the_motors_until_they_are_stopped(tmp_path, link, slaves):
    bench = Bench(tmp_path, link[0], "effort")
    bench.driver.open()
    bench.until(lambda: bench.out.t_ns, command=False)
    np.testing.assert_allclose(bench.out.position, START, atol=1e-3)
    assert not bench.out.fault.any() and slaves.efforts == [0.0, 0.0]
    bench.driver.enable("effort")
    resolution = bench.driver.report()[1]["resolution"]
    bench.until(lambda: abs(bench.out.velocity).min() > 1.0, effort=[2 * PUSH, -PUSH])
    assert bench.out.velocity[0] > 0 > bench.out.velocity[1]
    assert slaves.efforts == pytest.approx([-PUSH, -PUSH], abs=resolution)  # direction -1
    np.testing.assert_allclose(bench.out.effort, [2 * PUSH, -PUSH], atol=2 * resolution)
    bench.driver.stop()
    bench.until(lambda: slaves.efforts == [0.0, 0.0], command=False)
    bench.driver.close()


@real_time
@pytest.mark.parametrize(
    ("segment", "mode"),
    [
        ({}, "velocity"),
        ({}, "position"),
        (UNITS, "velocity"),
        ({"fixed_maps": True}, "effort"),
        ({"fixed_maps": True}, "position"),
    ],
    indirect=["segment"],
    ids=["velocity", "position", "velocity in other units", "effort in own maps", "position in own maps"],
)
def test_drives_follow_in_each_mode_with_other_units_and_process_data(bench, slaves, mode):
    made, goal = bench(mode), START + np.array([0.1, -0.2])
    if mode == "position":
        made.until(lambda: abs(made.out.position - goal).max() < 0.01, position=goal)
        assert slaves.ask(k=1)["position"] == pytest.approx(goal[1], abs=0.02)
    elif mode == "velocity":
        made.until(lambda: abs(made.out.velocity - [0.5, -1.0]).max() < 0.05, velocity=[0.5, -1.0])
    else:
        made.until(lambda: abs(made.out.velocity).min() > 1.0, effort=[2 * PUSH, -PUSH])
        assert slaves.efforts[1] == pytest.approx(-PUSH, abs=made.driver.report()[1]["resolution"])


@real_time
def test_without_commands_the_drives_stop_however_often_they_are_read(bench, slaves, said):
    made = bench()
    made.until(lambda: made.out.velocity[1] > 0.5, effort=PUSH)
    begun = now()
    made.until(lambda: made.out.fault.all(), command=False)
    assert now() - begun > 0.5 * WATCHDOG * 1e9
    (words,) = set(made.words())
    said(words)
    made.until(lambda: slaves.efforts == [0.0, 0.0], command=False)
    made.driver.clear()
    made.driver.enable("effort")
    made.until(lambda: made.out.velocity[1] > 0.5, effort=PUSH)


@real_time
def test_a_fault_has_its_name_and_stays_until_it_is_cleared(bench, slaves):
    made = bench()
    slaves.ask("fault", 1, "overcurrent")
    made.until(lambda: made.out.fault[1], effort=PUSH)
    assert made.words()[1].startswith("over current (drive error 0x2310); ") and not made.out.fault[0]
    slaves.ask("fault", 1, "-")
    assert "over current" in refused(made.driver.enable, "effort")
    made.driver.clear()
    made.driver.enable("effort")
    made.until(lambda: made.out.velocity[1] > 0.2, effort=PUSH)


@real_time
def test_a_silent_slave_makes_feedback_old_and_is_named_when_it_is_opened(bench, slaves, said):
    made = bench()
    made.until(lambda: made.out.t_ns, command=False)
    slaves.ask("mute", 1, "1")
    made.driver.read(made.out, now() + 5 * MS)
    heard = made.out.t_ns
    for _ in range(3):
        made.driver.read(made.out, now() + 5 * MS)
    assert made.out.t_ns == heard
    made.driver.close()
    said(refused(made.driver.open).partition("rig.yaml")[2], r"\bea\d+")


@real_time
def test_a_whole_run_with_its_report(tmp_path, link, slaves):
    driver = {"type": "cia402", "ethercat": {"interface": link[0]}, "watchdog": WATCHDOG}
    data = rig(driver, [{"id": 1}, {"id": 2}])
    for joint in ("a", "b"):
        data["joints"][joint]["initial"] = {}
        data["joints"][joint]["limits"] |= {"tracking": 10.0, "frozen": 10.0}
    sine = {"type": "sine", "amplitude": 0.1, "frequency": 1.0}
    data |= {
        "controllers": [{"name": "arm", "type": "pid", "kp": 0.02, "ki": 0.0, "kd": 0.01, "trajectory": sine}],
        "guard": {"stale": 0.9, "watchdog": PATIENCE},
        "schedule": {"step": "20 ms", "duration": 0.6, "blend": 0.1, "realtime": {"warm_up": 60}},
    }
    run = load_rig(write_rig(tmp_path / "rig.yaml", data)).run()
    assert run.fault == "" and np.ptp(run["a/position"]) > 1e-3
    (report,) = run.summary["drivers"]
    assert report["connection"] == f"EtherCAT on {link[0]}" and report["sent"] > 100 and report["unsent"] == 0
    assert 0 < report["bus_load_estimated"] < 0.01
    assert slaves.efforts == [0.0, 0.0]


@pytest.mark.parametrize("keys", [{}, {"ethercat": {}}], ids=["no line", "no interface"])
def test_a_mistake_is_one_line_at_its_place(keys, tmp_path, said):
    data = rig({"type": "cia402", **keys}, [{"id": 1}, {"id": 2}])
    said(refused(read_rig, write_rig(tmp_path / "rig.yaml", data)))


def test_drives_on_ethercat_are_not_emulated(tmp_path, said):
    data = rig({"type": "cia402", "ethercat": {"interface": "eth0"}}, [{"id": 1}, {"id": 2}])
    said(refused(lambda: emulation_of(read_rig(write_rig(tmp_path / "rig.yaml", data)))))


def test_interfaces_without_slaves(tmp_path, link, said):
    for interface in (link[0], "nowhere0"):
        said(refused(Bench(tmp_path, interface, "effort").driver.open), r"\bea\d+", r"(?<=for EtherCAT: )[^;]+")


def test_outputs_are_written_where_there_is_memory_for_them_alone():
    slow, ready = SimpleNamespace(output=b""), SimpleNamespace(output=bytes(6))
    for slave in (slow, ready):
        EthercatLink._set_output(slave, b"\1" * 6)
    assert (slow.output, ready.output) == (b"", b"\1" * 6)
