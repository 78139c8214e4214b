"""Parts as federates of HELICS on loopback: the numbers of one process, mistakes, and what ends while it runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cosim import StoppedRun, load_rig
from cosim.rig.federates import run_federate, with_federates
from cosim.simulation.federation.federate import free_port
from tests.kit.flywheel import flywheel
from tests.kit.given import beside
from tests.kit.refusals import raised, refusal

GIVEN = beside(__file__)

RIG = GIVEN["rig"]
OF_ONE = RIG.replace(", federate: winch", "")  # one federate beside the mechanism
KEPT = 10  # ticks before a part fails


@pytest.fixture
def rig(tmp_path):
    """The file, with a part in Python that does `fault` after ten ticks."""

    def make(fault: str = "pass", text: str = RIG) -> Path:
        failing = f"if float(t) > 0.0102: {fault}"
        (tmp_path / "python.py").write_text(flywheel(first=failing, imports="import os, signal, time"))
        (tmp_path / "traced.py").write_text(flywheel())
        (tmp_path / "rig.yaml").write_text(text)
        return tmp_path / "rig.yaml"

    return make


def both(path, *overrides):
    """(the run in one process, the run with federates)."""
    loaded = load_rig(path, overrides)
    return loaded.run(), with_federates(loaded, path, overrides).run()


def assert_equal_to_the_bit(one, other):
    assert one.signals == other.signals
    for name in one.signals:
        np.testing.assert_array_equal(other[name], one[name], err_msg=name)


def test_three_processes_give_the_numbers_of_one(rig):
    one, other = both(rig(), "couplings.correction={gain: 0.5}")
    assert_equal_to_the_bit(one, other)
    assert np.abs(one["wheel-mechanism/residual_energy"]).max() > 1e-9
    assert other.rig.engine["part drum"] == "Python: in the federate 'winch'"


MEETING = GIVEN["meeting"]


def test_parts_in_two_federates_compute_at_the_same_time_with_jacobi(rig):
    """Each waits within its step for the other to step."""
    settings = "couplings.master=jacobi", "couplings.order=2", "parts.0.step=1 ms", "parts.1.step=1 ms"
    path = rig()

    def run_with(first: str, run):
        for file in ("python.py", "traced.py"):
            (path.parent / file).write_text(flywheel(first=first, imports=MEETING))
        return run(load_rig(path, settings))

    meeting = "if float(t) > 0.0018: meet(float(t), 60)"
    alone = run_with("float(t)", lambda rig: rig.run())
    assert_equal_to_the_bit(alone, run_with(meeting, lambda rig: with_federates(rig, path, settings).run()))


WITHOUT = RIG.replace(", federate: load", "").replace(", federate: winch", "")
MISTAKES = {
    **{
        f"the address {each}": lambda path, each=each: with_federates(load_rig(path), path, (), each)
        for each in ("load", "tcp://:5", "127.0.0.1:70000")
    },
    "the address of the broker": lambda path: run_federate(path, "load", "load", ()),
    "the name of a federate": lambda path: run_federate(path, "lod", "127.0.0.1:1", ()),
    "the name of the mechanism": lambda path: load_rig(path, ["parts.0.federate=mechanism"]),
    "a name of HELICS": lambda path: load_rig(path, ["parts.0.federate=core"]),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_mistakes(rig, said, what):
    said(refusal(MISTAKES[what], rig()))


def test_a_rig_without_federates(rig, said):
    path = rig(text=WITHOUT)
    said(refusal(with_federates, load_rig(path), path))


def test_without_helics(rig, said, monkeypatch):
    path = rig()
    monkeypatch.setitem(sys.modules, "helics", None)
    said(refusal(with_federates, load_rig(path), path))


def test_no_broker(rig):
    path, address = rig(), f"tcp://127.0.0.1:{free_port()}"
    result = subprocess.run(
        [sys.executable, "-m", "cosim", "run", str(path), "--helics", address], capture_output=True, text=True
    )
    port = address.rpartition(":")[2]
    fix = f"start one there: helics_broker -t zmq -f FEDERATES --localport={port}"
    assert (result.returncode, result.stderr) == (1, f"{address}: no broker of HELICS answers; {fix}\n")


@pytest.mark.parametrize(("fault", "message"), GIVEN["a_federate_that_fails_stops_the_run_and_keeps_what_it_has"])
def test_a_federate_that_fails_stops_the_run_and_keeps_what_it_has(rig, fault, message):
    limit = 2 if "sleep" in fault else 60  # a busy machine answers late
    path, settings = rig(fault, OF_ONE), [f"couplings.time_limit={limit} s"]
    run = raised(StoppedRun, with_federates(load_rig(path, settings), path, settings).run).run
    assert message in run.fault and len(run.t) == KEPT
    assert not running_federates(path)


def running_federates(path: Path) -> list[str]:
    """Processes of federates of this rig."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if "cosim.rig.federates" in words and str(path) in words:
            found.append(entry.parent.name)
    return found


BROKER = """
import casadi, helics, sys, time
broker = helics.helicsCreateBroker("zmq", "", f"-f {sys.argv[2]} --localport={sys.argv[1]} --loglevel=no_print")
print("ready", flush=True)
while helics.helicsBrokerIsConnected(broker):
    time.sleep(0.05)
"""


class ByHand:
    """A broker in its own process, and federates that are started beside the run."""

    def __init__(self, count: int) -> None:
        self.port, self._processes = free_port(), []
        self.address = f"127.0.0.1:{self.port}"
        self.broker = self.start("-c", BROKER, str(self.port), str(count))
        assert self.broker.stdout is not None
        self.broker.stdout.readline()

    def start(self, *words) -> subprocess.Popen:
        """A process of Python."""
        self._processes.append(
            subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        )
        return self._processes[-1]

    def federate(self, path, *words) -> subprocess.Popen:
        return self.start("-m", "cosim", "federate", str(path), "load", "--broker", self.address, *words)

    def end(self) -> None:
        for process in self._processes:
            process.kill()
            process.communicate()


@pytest.fixture
def by_hand():
    """Makes a `ByHand` for so many federates."""
    made = []

    def make(count: int = 2) -> ByHand:
        made.append(ByHand(count))
        return made[-1]

    yield make
    for each in made:
        each.end()


# An observer of HELICS's own interface: for each time that it gets values, a line with the time and the values.
OBSERVER = GIVEN["observer"]


def test_an_observer_sees_what_is_recorded(rig, by_hand):
    """And a federate that is started by hand gives the numbers of one process."""
    hand, path = by_hand(3), rig(text=OF_ONE)
    federate, loaded = hand.federate(path), load_rig(path)
    names = {"wheel/torque": "wheel/torque", "drum/torque": "drum/torque", "mechanism/shaft/velocity": "shaft/velocity"}
    observer = hand.start("-c", OBSERVER, str(hand.port), *(f"{name}=" for name in names), "wheel/torque=mN*m")
    run = with_federates(loaded, path, (), hand.address).run()
    assert_equal_to_the_bit(loaded.run(), run)
    seen = np.array([json.loads(line) for line in observer.communicate(timeout=60)[0].splitlines()])
    np.testing.assert_allclose(seen[:, 0], run.t, rtol=1e-15)
    for k, name in enumerate(names.values()):
        np.testing.assert_array_equal(seen[:, k + 1], run[name], err_msg=name)
    np.testing.assert_allclose(seen[:, 4], 1e3 * run["wheel/torque"], rtol=1e-12)  # HELICS knows the unit
    assert federate.wait(60) == 0


def test_a_federate_with_another_rig(rig, by_hand):
    hand, path = by_hand(), rig(text=OF_ONE)
    federate = hand.federate(path, "--set", "couplings.order=2")
    what = "the federate 'load' has other parts or couplings than the run; load the same rig with the same overrides"
    assert refusal(with_federates(load_rig(path), path, (), hand.address).run) == what
    assert federate.communicate(timeout=60)[1] == f"{what}\n" and federate.returncode == 2


def test_a_broker_that_is_killed(rig, by_hand):
    hand = by_hand()
    broker = hand.broker
    path = rig(f"os.path.exists('/proc/{broker.pid}') and os.kill({broker.pid}, signal.SIGKILL)", OF_ONE)
    settings = ["couplings.time_limit=3 s"]
    hand.federate(path, "--set", *settings)
    with pytest.raises(StoppedRun, match="broker") as stopped:
        with_federates(load_rig(path, settings), path, settings, hand.address).run()
    assert KEPT <= len(stopped.value.run.t) < 20
    assert broker.wait(60) == -9
