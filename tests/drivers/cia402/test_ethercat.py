"""CiA 402 over EtherCAT: the driver, pysoem and simulated slaves at the two ends of a virtual Ethernet link."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cosim.drivers import cia402
from cosim.drivers.transport import now
from cosim.errors import InputError, RunError
from cosim.rig.emulate import emulation_of
from cosim.rig.rig import Rig, load_rig
from cosim.rig.sections.rig_spec import read_rig
from cosim.types import JointCommand, JointState
from tests.conformance.families import PATIENCE, rig, write_rig
from tests.kit.clock import MS

pytest.importorskip("pysoem", reason="pysoem is not installed")
ROOT = Path(__file__).parents[3]
START = np.array([-0.1 / 2 + 0.3, 0.2])  # of the joints
PUSH = 0.02  # N·m at the drive
WATCHDOG = 1.0  # s
_numbers = itertools.count()


def why_not() -> str:
    """Why this machine has no virtual Ethernet link, empty if it has one."""
    if shutil.which("ip") is None or not hasattr(socket, "AF_PACKET"):
        return "no command 'ip' or no raw sockets"
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()
    except PermissionError:
        return "raw sockets are not permitted"
    return ""


@pytest.fixture
def link() -> Iterator[tuple[str, str]]:
    """Two interfaces, joined."""
    if reason := why_not():
        pytest.skip(reason)
    number = f"{os.getpid() % 100_000}{next(_numbers) % 1000}"
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


@pytest.fixture
def slaves(request, link) -> Iterator[Slaves]:
    """Indirect parameter: settings of the drives."""
    made = Slaves(link[1], getattr(request, "param", {}))
    yield made
    made.close()


@pytest.fixture
def bench(request, tmp_path, link, slaves) -> Iterator[Bench]:
    made = Bench(tmp_path, link[0], getattr(request, "param", "effort"))
    yield made
    made.driver.close()


def test_drives_are_opened_and_stay_off(bench, slaves):
    bench.driver.open()
    bench.until(lambda: bench.out.t_ns, command=False)
    np.testing.assert_allclose(bench.out.position, START, atol=1e-3)
    assert not bench.out.fault.any()
    assert slaves.ask()["effort"] == 0.0


def test_an_effort_moves_the_motors_and_stop_switches_them_off(bench, slaves):
    bench.driver.open()
    bench.driver.enable("effort")
    resolution = bench.driver.report()[1]["resolution"]
    bench.until(lambda: abs(bench.out.velocity).min() > 1.0, effort=[2 * PUSH, -PUSH])
    assert bench.out.velocity[0] > 0 > bench.out.velocity[1]
    assert slaves.ask(k=0)["effort"] == pytest.approx(-PUSH, abs=resolution)  # direction -1
    np.testing.assert_allclose(bench.out.effort, [2 * PUSH, -PUSH], atol=2 * resolution)
    bench.driver.stop()
    bench.until(lambda: slaves.ask(k=0)["effort"] == slaves.ask(k=1)["effort"] == 0.0, command=False)


@pytest.mark.parametrize("bench", ["position"], indirect=True)
def test_a_position_is_reached(bench):
    bench.driver.open()
    bench.driver.enable("position")
    goal = START + np.array([0.1, -0.2])
    bench.until(lambda: abs(bench.out.position - goal).max() < 0.01, position=goal)


@pytest.mark.parametrize("bench", ["velocity"], indirect=True)
def test_a_velocity_is_held(bench):
    bench.driver.open()
    bench.driver.enable("velocity")
    bench.until(lambda: abs(bench.out.velocity - [0.5, -1.0]).max() < 0.05, velocity=[0.5, -1.0])


OTHERS = {
    "feed constant": {"encoder_resolution": 131072, "feed_constant": 36000, "velocity_unit": "mrpm"},
    "process data of its own": {"fixed_maps": True},
}


@pytest.mark.parametrize("slaves", OTHERS.values(), ids=OTHERS, indirect=True)
@pytest.mark.parametrize("bench", ["effort", "velocity", "position"], indirect=True)
def test_drives_with_other_units_or_process_data(bench, slaves):
    bench.driver.open()
    bench.driver.enable(bench.mode)
    if bench.mode == "position":
        goal = START + np.array([0.1, -0.2])
        bench.until(lambda: abs(bench.out.position - goal).max() < 0.01, position=goal)
        assert slaves.ask(k=1)["position"] == pytest.approx(goal[1], abs=0.02)
    elif bench.mode == "velocity":
        bench.until(lambda: abs(bench.out.velocity - [0.5, -1.0]).max() < 0.05, velocity=[0.5, -1.0])
    else:
        bench.until(lambda: abs(bench.out.velocity).min() > 1.0, effort=[2 * PUSH, -PUSH])
        assert slaves.ask(k=1)["effort"] == pytest.approx(-PUSH, abs=bench.driver.report()[1]["resolution"])


def test_without_commands_the_drives_stop_however_often_they_are_read(bench, slaves):
    bench.driver.open()
    bench.driver.enable("effort")
    bench.until(lambda: bench.out.velocity[1] > 1.0, effort=PUSH)
    begun = now()
    bench.until(lambda: bench.out.fault.all(), command=False)
    assert now() - begun > 0.5 * WATCHDOG * 1e9
    assert (
        bench.words() == ["heartbeat lost (drive error 0x8130); commands stopped; check what blocked the program"] * 2
    )
    bench.until(lambda: slaves.ask(k=0)["effort"] == slaves.ask(k=1)["effort"] == 0.0, command=False)
    bench.driver.clear()
    bench.driver.enable("effort")
    bench.until(lambda: bench.out.velocity[1] > 1.0, effort=PUSH)


def test_a_fault_has_its_name_and_stays_until_it_is_cleared(bench, slaves):
    bench.driver.open()
    bench.driver.enable("effort")
    bench.until(lambda: bench.out.velocity[1] > 0.2, effort=PUSH)
    slaves.ask("fault", 1, "overcurrent")
    bench.until(lambda: bench.out.fault[1], effort=PUSH)
    assert bench.words()[1].startswith("over current (drive error 0x2310); ") and not bench.out.fault[0]
    with pytest.raises(RunError, match="over current"):
        bench.driver.enable("effort")
    slaves.ask("fault", 1, "-")
    bench.driver.clear()
    bench.driver.enable("effort")
    bench.until(lambda: bench.out.velocity[1] > 0.2, effort=PUSH)


def test_a_silent_slave_makes_feedback_old_and_is_named_when_it_is_opened(bench, slaves):
    bench.driver.open()
    bench.until(lambda: bench.out.t_ns, command=False)
    slaves.ask("mute", 1, "1")
    bench.driver.read(bench.out, now() + 5 * MS)
    heard = bench.out.t_ns
    for _ in range(3):
        bench.driver.read(bench.out, now() + 5 * MS)
    assert bench.out.t_ns == heard
    bench.driver.close()
    with pytest.raises(InputError) as caught:
        bench.driver.open()
    name = bench.driver.link.name
    assert caught.value.what == f"no answer from node 2 on {name}; check its power, the id and the bit rate"


def test_limits_beyond_the_drives_own_are_refused(tmp_path, link, slaves):
    bench = Bench(tmp_path, link[0], "effort", effort=1000.0)
    with pytest.raises(InputError, match="the effort limit is 1000 N"):
        bench.driver.open()


def test_an_interface_without_slaves(tmp_path, link):
    bench = Bench(tmp_path, link[0], "effort")
    with pytest.raises(InputError) as caught:
        bench.driver.open()
    what = f"no EtherCAT slave answers on '{link[0]}'; check its cable and the power of the drives"
    assert caught.value.what == what and str(caught.value.place).endswith("drivers[0].ethercat.interface")


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
    assert slaves.ask(k=0)["effort"] == slaves.ask(k=1)["effort"] == 0.0


MISTAKES = {
    "drivers[0]: give either 'bus' or 'ethercat'": {},
    "drivers[0].ethercat: missing key 'interface'": {"ethercat": {}},
}


@pytest.mark.parametrize("expected", MISTAKES)
def test_a_mistake_is_one_line_at_its_place(expected, tmp_path):
    data = rig({"type": "cia402", **MISTAKES[expected]}, [{"id": 1}, {"id": 2}])
    with pytest.raises(InputError) as caught:
        read_rig(write_rig(tmp_path / "rig.yaml", data))
    assert str(caught.value) == f"{tmp_path}/rig.yaml:1 {expected}"


def test_drives_on_ethercat_are_not_emulated(tmp_path):
    data = rig({"type": "cia402", "ethercat": {"interface": "eth0"}}, [{"id": 1}, {"id": 2}])
    with pytest.raises(InputError) as caught:
        emulation_of(read_rig(write_rig(tmp_path / "rig.yaml", data)))
    what = "drives on EtherCAT cannot be emulated; give a 'bus' to emulate the same drives on CANopen"
    assert str(caught.value) == f"{tmp_path}/rig.yaml:1 drivers[0].ethercat: {what}"


def test_no_such_interface(tmp_path):
    bench = Bench(tmp_path, "nowhere0", "effort")
    with pytest.raises(InputError) as caught:
        bench.driver.open()
    assert caught.value.what.startswith("cannot open 'nowhere0' for EtherCAT: ")
    assert caught.value.what.endswith("; check its name, and run with the privilege for raw sockets")
