"""Parts as federates of HELICS on loopback: the numbers of one process, mistakes, and what ends while it runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cosim import InputError, StoppedRun, load_rig
from cosim.federation.federate import free_port
from cosim.rig.federates import run_federate, with_federates
from tests.fmi import fmus
from tests.kit.flywheel import flywheel

RIG = """
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {name: rotor, joint: shaft, axis: [0, 0, 1], mass: 1 kg, inertia: [0.02, 0.02, 0.02]}
    - {name: disc, joint: axle, axis: [0, 0, 1], mass: 1 kg, inertia: [0.03, 0.03, 0.03]}
joints:
  shaft: {initial: {velocity: 5 rad/s}}
  axle: {initial: {velocity: 3 rad/s}}
parts:
  - {name: wheel, type: python.py, params: {inertia: 0.05, stiffness: 20}, step: 0.2 ms, federate: load}
  - {name: drum, type: traced.py, params: {inertia: 0.04, stiffness: 30}, step: 0.5 ms, federate: winch}
couplings:
  bonds:
    - {effort: [wheel.torque, mechanism.shaft/effort], flow: [mechanism.shaft/velocity, wheel.speed]}
    - {effort: [drum.torque, mechanism.axle/effort], flow: [mechanism.axle/velocity, drum.speed]}
schedule: {step: 1 ms, duration: 20 ms}
"""
KEPT = 10  # ticks before a part fails
FAULT = "if t > 0.0102: {what}"


@pytest.fixture
def rig(tmp_path):
    """The file, with a part in Python that does `fault` after ten ticks."""

    def make(fault: str = "pass", text: str = RIG) -> Path:
        failing = FAULT.format(what=fault).replace("if t", "if float(t)")
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


@pytest.mark.parametrize(("master", "order"), [("gauss_seidel", 1), ("jacobi", 2)])
def test_three_processes_give_the_numbers_of_one(rig, master, order):
    settings = f"couplings.master={master}", f"couplings.order={order}", "couplings.correction={gain: 0.5}"
    one, other = both(rig(), *settings)
    assert_equal_to_the_bit(one, other)
    assert np.abs(one["wheel-mechanism/residual_energy"]).max() > 1e-9
    assert other.rig.engine["part drum"] == "Python: in the federate 'winch'"


def test_a_compiled_rig_equals_its_federates_to_rounding(rig):
    one, other = both(rig(text=RIG.replace("python.py", "traced.py")))
    assert one.rig.engine["part wheel"] == "compiled"
    for name in one.signals:
        np.testing.assert_allclose(other[name], one[name], atol=1e-11, err_msg=name)


@fmus.needs_gcc
def test_an_fmu_in_a_federate(tmp_path):
    file = fmus.build(tmp_path, "turntable", 2)
    (tmp_path / "rig.yaml").write_text(f"""
mechanism:
  bodies: [{{name: rotor, joint: shaft, axis: [0, 0, 1], mass: 1 kg, inertia: [0.02, 0.02, 0.02]}}]
joints:
  shaft: {{prescribed: {{type: sine, amplitude: 30 deg, frequency: 1 Hz}}}}
parts:
  - {{name: table, fmu: {file.name}, params: {{temperature: 30 degC}}, federate: table}}
couplings: {{wires: [{{output: mechanism.shaft/velocity, input: table.rate}}]}}
schedule: {{step: 2 ms, duration: 40 ms}}
""")
    one, other = both(tmp_path / "rig.yaml")
    assert_equal_to_the_bit(one, other)
    assert np.abs(one["table/angle"]).max() > 0.05


# --- mistakes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["load", "tcp://:5", "127.0.0.1:70000"])
def test_an_address_that_is_none(rig, address):
    path = rig()
    message = f"'{address}' is no address; give HOST:PORT, such as 127.0.0.1:23404"
    with pytest.raises(InputError) as wrong:
        with_federates(load_rig(path), path, (), address)
    assert str(wrong.value) == f"--helics: {message}"
    with pytest.raises(InputError) as wrong:
        run_federate(path, "load", address, ())
    assert str(wrong.value) == f"--broker: {message}"


def test_mistakes_of_names(rig):
    path = rig()
    with pytest.raises(InputError) as wrong:
        run_federate(path, "lod", "127.0.0.1:1", ())
    assert str(wrong.value) == f"{path}: no part has the federate 'lod'; did you mean 'load'?; there is load, winch"
    path.write_text(RIG.replace(", federate: load", "").replace(", federate: winch", ""))
    with pytest.raises(InputError) as wrong:
        with_federates(load_rig(path), path)
    assert str(wrong.value) == f"{path}: no part of the rig has a federate; give parts the key `federate`"
    with pytest.raises(InputError) as wrong:
        load_rig(path, ["parts.0.federate=mechanism"])
    what = "is where the mechanism runs; take the key out, or give another name"
    assert str(wrong.value) == f"--set parts.0.federate=mechanism: {what}"


def test_without_helics(rig, monkeypatch):
    path = rig()
    monkeypatch.setitem(sys.modules, "helics", None)
    with pytest.raises(InputError) as wrong:
        with_federates(load_rig(path), path)
    assert str(wrong.value) == "--helics: HELICS is not installed; pip install 'cosim[helics]'"


def test_no_broker(rig):
    path, address = rig(), f"tcp://127.0.0.1:{free_port()}"
    result = subprocess.run(
        [sys.executable, "-m", "cosim", "run", str(path), "--helics", address], capture_output=True, text=True
    )
    port = address.rpartition(":")[2]
    fix = f"start one there: helics_broker -t zmq -f FEDERATES --localport={port}"
    assert (result.returncode, result.stderr) == (1, f"{address}: no broker of HELICS answers; {fix}\n")


# --- failures -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("raise ValueError('too far')", "part 'wheel' failed at t = 0.01 s: "),
        ("x = {'twist': float('nan'), 'speed': 0.0}", "part 'wheel' diverged: its output 'torque' is nan"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "the federate 'load' has ended with exit code -9 at t = 0.01 s"),
        (
            "time.sleep(100)",
            "the federate 'load' gives no answer for part 'wheel' within 1 s at t = 0.01 s; it or the broker has ended"
            " or hangs, or needs a longer couplings.time_limit",
        ),
    ],
)
def test_a_federate_that_fails_stops_the_run_and_keeps_what_it_has(rig, fault, message):
    path, settings = rig(fault), ["couplings.time_limit=1 s"]
    with pytest.raises(StoppedRun) as stopped:
        with_federates(load_rig(path, settings), path, settings).run()
    run = stopped.value.run
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
        if "cosim.rig.federate_process" in words and str(path) in words:
            found.append(entry.parent.name)
    return found


BROKER = """
import casadi, helics, sys, time
broker = helics.helicsCreateBroker("zmq", "", f"-f 2 --localport={sys.argv[1]} --loglevel=no_print")
print("ready", flush=True)
while helics.helicsBrokerIsConnected(broker):
    time.sleep(0.05)
"""


@pytest.fixture
def by_hand():
    """(address of a broker for two federates, its process, a function that starts a federate)."""
    port = free_port()
    broker = subprocess.Popen([sys.executable, "-c", BROKER, str(port)], stdout=subprocess.PIPE, text=True)
    assert broker.stdout is not None
    broker.stdout.readline()
    processes, address = [broker], f"127.0.0.1:{port}"

    def start(path, *words):
        command = [sys.executable, "-m", "cosim", "federate", str(path), "load", "--broker", address, *words]
        processes.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
        return processes[-1]

    yield address, broker, start
    for process in processes:
        process.kill()
        process.communicate()


OF_ONE = RIG.replace(", federate: winch", "")


def test_a_federate_that_is_started_by_hand(rig, by_hand):
    address, _, start = by_hand
    path = rig(text=OF_ONE)
    federate, loaded = start(path), load_rig(path)
    assert_equal_to_the_bit(loaded.run(), with_federates(loaded, path, (), address).run())
    assert federate.wait(20) == 0


def test_a_federate_with_another_rig(rig, by_hand):
    address, _, start = by_hand
    path = rig(text=OF_ONE)
    federate = start(path, "--set", "couplings.order=2")
    what = "the federate 'load' has other parts or couplings than the run; load the same rig with the same overrides"
    with pytest.raises(InputError) as wrong:
        with_federates(load_rig(path), path, (), address).run()
    assert str(wrong.value) == what
    assert federate.communicate(timeout=20)[1] == f"{what}\n" and federate.returncode == 2


def test_a_broker_that_is_killed(rig, by_hand):
    address, broker, start = by_hand
    path = rig(f"os.path.exists('/proc/{broker.pid}') and os.kill({broker.pid}, signal.SIGKILL)", OF_ONE)
    settings = ["couplings.time_limit=2 s"]
    start(path, "--set", *settings)
    with pytest.raises(StoppedRun, match="broker") as stopped:
        with_federates(load_rig(path, settings), path, settings, address).run()
    assert KEPT <= len(stopped.value.run.t) < 20
    assert broker.wait(5) == -9
