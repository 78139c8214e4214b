"""Real-time privileges: each acquired and released, refused with its fix; a quiet interpreter."""

import ctypes
import gc
import os
import pwd
import resource
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from types import SimpleNamespace

import pytest

from cosim.core.errors import InputError, SourceLocation
from cosim.execution.timing import privileges
from cosim.execution.timing.privileges import (
    Privilege,
    acquire,
    allowed_cpus,
    left_to_loop,
    move_process_off,
    quiet_interpreter,
    refuse_missing,
)
from cosim.simulation.loop.pacing import Pacing

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs the privileges of Linux")

FIFO, MEMORY, AWAKE = "fixed priority (SCHED_FIFO)", "locked memory", "processor kept awake"


class System:
    """A system that records requests and refuses those in `refused`."""

    def __init__(self, monkeypatch, folder):
        self.asked, self.refused, self.libc_handles = [], set(), 0
        self.status, self.groups, self.awake = folder / "status", folder / "cgroup", folder / "awake"
        self.patch = monkeypatch.setattr
        self.status.write_text("Name:\tpython\nCapEff:\t0000000000000000\n")
        self.groups.write_text("0::/\n")
        self.awake.write_bytes(b"")
        for name, path in {"STATUS": self.status, "GROUPS": self.groups, "AWAKE": str(self.awake)}.items():
            self.patch(privileges, name, path)
        self.patch(os, "geteuid", lambda: 1000)
        self.patch(pwd, "getpwuid", lambda uid: SimpleNamespace(pw_name=f"user{uid}"))
        self.patch(os, "sched_getscheduler", lambda thread: os.SCHED_BATCH)
        self.patch(os, "sched_getparam", lambda thread: os.sched_param(0))
        self.patch(os, "sched_getaffinity", lambda thread: {2, 0})
        self.patch(os, "sched_setscheduler", lambda thread, policy, p: self.ask("policy", thread, policy, *p))
        self.patch(os, "sched_setaffinity", lambda thread, cpus: self.ask("cpus", thread, cpus))
        self.patch(ctypes, "CDLL", lambda name, use_errno: self)
        self.limit_memory(resource.RLIM_INFINITY)

    def ask(self, what, *arguments):
        if what in self.refused:
            raise PermissionError(1, "Operation not permitted")
        self.asked.append((what, *arguments))

    def limit_memory(self, most):
        self.patch(resource, "getrlimit", lambda item: {resource.RLIMIT_MEMLOCK: (most, most)}[item])

    def can(self, *bits):
        self.status.write_text(f"Name:\tpython\nCapEff:\t{sum(1 << bit for bit in bits):016x}\n")

    # of the C library

    def mlockall(self, flags):
        if "memory" in self.refused:
            return -1
        self.asked.append(("memory", flags))
        return 0

    def munlockall(self):
        self.asked.append(("memory free",))

    def missing(self, cpu=None):
        """name -> fix of what is not granted."""
        with acquire(Pacing(cpu=cpu)) as granted:
            return {item.name: item.fix for item in granted if not item.granted}

    def awake_open(self):
        links = (f"/proc/self/fd/{handle}" for handle in os.listdir("/proc/self/fd"))
        return str(self.awake) in [os.readlink(link) for link in links if os.path.lexists(link)]


@pytest.fixture
def system(monkeypatch, tmp_path):
    return System(monkeypatch, tmp_path)


def test_everything_is_taken_and_given_back_in_reverse(system):
    with acquire(Pacing(priority=42, cpu=3)) as granted:
        assert granted == tuple(Privilege(name, True, "") for name in (MEMORY, AWAKE, "CPU 3", FIFO))
        assert system.asked == [("memory", 3), ("cpus", 0, {3}), ("policy", 0, os.SCHED_FIFO, 42)]
        assert system.awake.read_bytes() == bytes(4)
        assert system.awake_open()
        system.asked.clear()
    assert system.asked == [("policy", 0, os.SCHED_BATCH, 0), ("cpus", 0, {0, 2}), ("memory free",)]
    assert not system.awake_open()


def test_it_is_given_back_after_an_error_too(system):
    with pytest.raises(ZeroDivisionError), acquire(Pacing()):
        raise ZeroDivisionError
    assert system.asked[-2:] == [("policy", 0, os.SCHED_BATCH, 0), ("memory free",)]
    assert not system.awake_open()


def test_no_cpu_is_reserved_unless_configured(system):
    with acquire(Pacing()) as granted:
        assert [item.name for item in granted] == [MEMORY, AWAKE, FIFO]
    assert "cpus" not in [what for what, *_ in system.asked]


def test_what_is_refused_is_not_given_back(system):
    system.refused = {"policy", "memory", "cpus"}
    system.awake.unlink()
    with acquire(Pacing(cpu=1)) as granted:
        assert not any(item.granted for item in granted)
    assert system.asked == []


def test_how_a_user_gets_what_is_refused(system, said):
    system.refused = {"policy", "memory", "cpus"}
    system.awake.unlink()
    system.awake.mkdir()
    said(f"{name}: {fix}" for name, fix in system.missing(cpu=9).items())


def test_how_root_in_a_container_gets_what_is_refused(system, said):
    system.patch(os, "geteuid", lambda: 0)
    system.refused = {"policy", "memory"}
    system.awake.unlink()
    said(f"{name}: {fix}" for name, fix in system.missing().items())


@pytest.mark.parametrize(
    "groups", ["4:memory:/a\n1:cpu,cpuacct:/user.slice\n", "0::/\n2:cpuset:/b\n1:cpu:/\n"], ids=["a slice", "the whole"]
)
def test_how_root_gets_what_a_control_group_refuses(system, said, groups):
    system.groups.write_text(groups)
    system.can(14, 23)
    system.refused = {"policy", "memory"}
    said(f"{name}: {fix}" for name, fix in system.missing().items())


def test_memory_is_not_locked_under_a_limit_that_the_run_could_reach(system):
    system.limit_memory(1 << 40)
    assert list(system.missing()) == [MEMORY]
    assert "memory" not in [what for what, *_ in system.asked]
    system.can(14)
    assert system.missing() == {}


def test_the_fix_for_a_user_without_a_name_grants_all_users(system):
    def unknown(uid):
        raise KeyError(uid)

    system.patch(pwd, "getpwuid", unknown)
    system.refused = {"policy"}
    assert system.missing()[FIFO].startswith("add '* - rtprio 99' to ")


def test_an_awake_processor_that_cannot_be_had_leaves_no_file_open(system):
    def full(handle, data):
        raise OSError(28, "No space left on device")

    system.patch(os, "write", full)
    assert list(system.missing()) == [AWAKE]
    assert not system.awake_open()


def test_other_systems_have_no_such_privileges(system):
    system.patch(sys, "platform", "darwin")
    assert system.missing(cpu=0) == dict.fromkeys((MEMORY, AWAKE, "CPU 0", FIFO), "needs Linux")
    assert system.asked == []


def test_strict_runs_are_refused_with_all_that_is_missing(said):
    granted = [Privilege("a", True, ""), Privilege("b", False, "do this"), Privilege("c", False, "do that")]
    with pytest.raises(InputError) as caught:
        refuse_missing(granted, SourceLocation("rig.yaml", 4, "schedule.realtime"))
    said(caught.value)
    assert caught.value.exit_code == 2
    refuse_missing(granted[:1], None)


def test_this_system_is_left_as_it_was():
    seen = {}

    def loop():
        before = os.sched_getscheduler(0), os.sched_getparam(0).sched_priority, os.sched_getaffinity(0)
        with acquire(Pacing(priority=7, cpu=min(before[2]))) as granted:
            seen["granted"] = {item.name: item.granted for item in granted}
            seen["within"] = os.sched_getscheduler(0), os.sched_getparam(0).sched_priority, os.sched_getaffinity(0)
        seen["before"] = before
        seen["after"] = os.sched_getscheduler(0), os.sched_getparam(0).sched_priority, os.sched_getaffinity(0)

    thread = threading.Thread(target=loop)
    thread.start()
    thread.join()
    assert seen["after"] == seen["before"]
    assert (seen["within"][:2] == (os.SCHED_FIFO, 7)) == seen["granted"][FIFO]
    assert seen["granted"][f"CPU {min(seen['before'][2])}"] == (seen["within"][2] == {min(seen["before"][2])})
    assert "VmLck:\t       0 kB" in Path("/proc/self/status").read_text().splitlines()


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_what_is_started_beside_the_loop_is_off_its_cpu():
    before = os.sched_getaffinity(0)
    reserved, seen = max(before), {}
    with pytest.raises(ZeroDivisionError), left_to_loop(reserved):
        thread = threading.Thread(target=lambda: seen.update(thread=os.sched_getaffinity(0)))
        thread.start()
        thread.join()
        program = "import os; print(*sorted(os.sched_getaffinity(0)))"
        started = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        seen["process"] = set(map(int, started.stdout.split()))
        raise ZeroDivisionError
    assert seen == {"thread": before - {reserved}, "process": before - {reserved}}
    assert os.sched_getaffinity(0) == before


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_a_program_beside_a_run_leaves_its_cpu_with_all_threads():
    allowed, begun, end = allowed_cpus(), threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: (begun.set(), end.wait(10.0)))
    thread.start()
    begun.wait(10.0)
    try:
        for cpu, expected in ((max(allowed), allowed - {max(allowed)}), (min(allowed), allowed - {min(allowed)})):
            move_process_off(cpu, allowed)
            assert os.sched_getaffinity(0) == os.sched_getaffinity(thread.native_id) == expected
        for cpu in (None, 4096):  # none is reserved, or none of this process
            move_process_off(cpu, allowed)
            assert os.sched_getaffinity(0) == os.sched_getaffinity(thread.native_id) == allowed
        move_process_off(max(allowed), frozenset({max(allowed)}))  # there is no other
        assert os.sched_getaffinity(0) == {max(allowed)}
    finally:
        move_process_off(None, allowed)
        end.set()
        thread.join()


@pytest.mark.parametrize(
    ("cpu", "allowed"), [(None, {0, 2}), (1, {0, 2}), (2, {2})], ids=["none", "not of this process", "the only one"]
)
def test_without_a_cpu_to_leave_nothing_is_asked(system, cpu, allowed):
    system.patch(os, "sched_getaffinity", lambda thread: allowed)
    with left_to_loop(cpu):
        assert system.asked == []
    assert system.asked == []


@pytest.mark.parametrize("collecting", [True, False])
def test_python_is_calm_and_then_as_before(collecting):
    interval, enabled = sys.getswitchinterval(), gc.isenabled()
    try:
        gc.unfreeze()
        (gc.enable if collecting else gc.disable)()
        with pytest.raises(ZeroDivisionError), quiet_interpreter():
            assert not gc.isenabled()
            assert gc.get_freeze_count() > 0
            assert sys.getswitchinterval() == pytest.approx(1e-4)
            raise ZeroDivisionError
        assert gc.isenabled() is collecting
        assert gc.get_freeze_count() == 0
        assert sys.getswitchinterval() == interval
    finally:
        (gc.enable if enabled else gc.disable)()
        gc.freeze()


def test_garbage_is_collected_before_the_loop():
    class Node:
        pass

    node = Node()
    node.itself, gone = node, weakref.ref(node)
    del node
    with quiet_interpreter():
        assert gone() is None


def test_what_a_program_has_frozen_stays_frozen():
    gc.freeze()
    frozen, young = gc.get_freeze_count(), [[]]
    with quiet_interpreter():
        assert gc.get_freeze_count() <= frozen and gc.is_tracked(young)
    assert 0 < gc.get_freeze_count() <= frozen
