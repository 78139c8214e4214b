"""Real-time privileges of a loop, acquired and released: fixed priority, locked memory, a CPU, no deep idle states.

A privilege that the system does not grant is no error here: it is reported, with how to get it.
"""

from __future__ import annotations

import ctypes
import errno
import gc
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cosim.core.errors import InputError, SourceLocation
from cosim.simulation.loop.pacing import Pacing

AWAKE = "/dev/cpu_dma_latency"
STATUS, GROUPS = Path("/proc/self/status"), Path("/proc/self/cgroup")
LOCK_ALL = 1 | 2  # MCL_CURRENT | MCL_FUTURE of <sys/mman.h>
# bits of <linux/capability.h>
CAP_IPC_LOCK, CAP_SYS_NICE = 14, 23
# s; longest turn of a Python thread beside a real-time loop in Python
SWITCH_INTERVAL = 1e-4

Undo = Callable[[], object]


@dataclass(frozen=True)
class Privilege:
    """A real-time privilege: whether it was granted, and how to get it (empty where it was)."""

    name: str
    granted: bool
    fix: str


@dataclass(frozen=True)
class _Request:
    """A privilege to ask the system for. acquire: acquires it and returns what releases it, or raises OSError; fix: how
    to get it, when it was refused."""

    name: str
    acquire: Callable[[], Undo]
    fix: Callable[[], str]

    def result(self, undo: ExitStack) -> Privilege:
        if sys.platform != "linux":
            return Privilege(self.name, False, "needs Linux")
        try:
            undo.callback(self.acquire())
        except OSError:
            return Privilege(self.name, False, self.fix())
        return Privilege(self.name, True, "")


@contextmanager
def acquire(pacing: Pacing) -> Iterator[tuple[Privilege, ...]]:
    """Acquire what the system grants, and release it at the end.

    To be entered and left in the thread of the loop. Priority and CPU belong to the thread, locked memory and the idle
    states to the whole process: one loop of a process at a time may hold them.
    """
    # memory first: locking it is slow, and must not run at a fixed priority
    requests = [
        _Request("locked memory", _lock_memory, _memory_fix),
        _Request("processor kept awake", _disable_idle, _idle_fix),
    ]
    if pacing.cpu is not None:
        requests.append(_Request(f"CPU {pacing.cpu}", partial(_set_cpu, pacing.cpu), _cpu_fix))
    requests.append(_Request("fixed priority (SCHED_FIFO)", partial(_set_priority, pacing.priority), _priority_fix))
    with ExitStack() as undo:
        yield tuple(request.result(undo) for request in requests)


def refuse_missing(privileges: Sequence[Privilege], place: SourceLocation | str | None) -> None:
    """Raises InputError at `place`, where the rig requires strict real time, when a privilege is missing."""
    missing = [f"{item.name} ({item.fix})" for item in privileges if not item.granted]
    if missing:
        raise InputError(
            f"strict, but this system does not grant {'; nor '.join(missing)}; grant what is missing or remove"
            " 'strict'",
            place,
        )


@contextmanager
def quiet_interpreter() -> Iterator[None]:
    """No garbage collection, and short turns of Python's threads: for a real-time loop in Python.

    What the program itself has frozen stays so: it is neither looked at here nor thawed.
    """
    collecting, interval, frozen = gc.isenabled(), sys.getswitchinterval(), gc.get_freeze_count() > 0
    gc.collect()
    gc.disable()
    if not frozen:
        gc.freeze()
    sys.setswitchinterval(SWITCH_INTERVAL)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
        if not frozen:
            gc.unfreeze()
        if collecting:
            gc.enable()


@contextmanager
def left_to_loop(cpu: int | None) -> Iterator[None]:
    """Keep this thread, and the threads and processes that it starts, off the CPU that is reserved for the loop.

    Nothing happens without such a CPU, where this thread may use no other, or where the system has no affinities.
    """
    before = allowed_cpus()
    others = before - {cpu}
    if not others or others == before:
        yield
        return
    os.sched_setaffinity(0, others)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def allowed_cpus() -> frozenset[int]:
    """Those that this thread may use; none where the system has no affinities."""
    return frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else frozenset()


def move_process_off(cpu: int | None, allowed: frozenset[int]) -> None:
    """Keep all threads of this process, a program beside a run, on the allowed CPUs but for the one that the loop of
    the run reserves, if it reserves one and there are others."""
    others = allowed - {cpu} or allowed
    for thread in os.listdir("/proc/self/task") if allowed else ():
        with suppress(OSError):  # it has ended
            os.sched_setaffinity(int(thread), others)


# --- how each is acquired ---


def _set_priority(priority: int) -> Undo:
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    return lambda: os.sched_setscheduler(0, *before)


def _set_cpu(cpu: int) -> Undo:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    return lambda: os.sched_setaffinity(0, before)


def _lock_memory() -> Undo:
    import resource

    # under a limit, memory could be locked now, but the run would fail when it allocates more
    limited = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] != resource.RLIM_INFINITY
    if limited and not _capable(CAP_IPC_LOCK):
        raise OSError(errno.ENOMEM, "the limit of locked memory is finite")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(LOCK_ALL):
        raise OSError(ctypes.get_errno(), "mlockall")
    return libc.munlockall


def _disable_idle() -> Undo:
    """No idle state with an exit latency above 0 µs while the file is open."""
    handle = os.open(AWAKE, os.O_WRONLY)
    try:
        os.write(handle, (0).to_bytes(4, "little"))
    except OSError:
        os.close(handle)
        raise
    return partial(os.close, handle)


# --- how to get each ---


def _capable(bit: int) -> bool:
    """Whether this process has a capability of Linux."""
    lines = STATUS.read_text().splitlines()
    return any(line.startswith("CapEff:") and int(line.split()[1], 16) >> bit & 1 for line in lines)


def _allow(capability: str, item: str, value: str, in_container: str) -> str:
    """How to get a privilege that a capability or a limit of the user grants."""
    if os.geteuid() == 0:
        return f"start the container with --cap-add={capability} --ulimit {item}={in_container}"
    return f"add '{_user()} - {item} {value}' to /etc/security/limits.conf and log in again, or run as root"


def _memory_fix() -> str:
    if _capable(CAP_IPC_LOCK):
        return "not enough memory; end other programs"
    return _allow("IPC_LOCK", "memlock", "unlimited", "-1")


def _priority_fix() -> str:
    if not _capable(CAP_SYS_NICE):
        return _allow("SYS_NICE", "rtprio", "99", "99")
    file = f"/sys/fs/cgroup/cpu{_control_group()}/cpu.rt_runtime_us"
    return f"the control group has no real-time budget: echo 950000 | sudo tee {file}, or boot with rt_group_sched=0"


def _control_group() -> str:
    """The path of this process in the hierarchy of control groups of the processor."""
    for line in GROUPS.read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "cpu" in controllers.split(",") and path != "/":
            return path
    return ""


def _idle_fix() -> str:
    if os.geteuid() == 0 or not os.path.exists(AWAKE):
        return f"in a container pass it with --device {AWAKE}; elsewhere use a kernel with CONFIG_CPU_IDLE"
    return f"sudo chmod o+w {AWAKE} (until the next start of the system), or run as root"


def _cpu_fix() -> str:
    usable = ", ".join(map(str, sorted(os.sched_getaffinity(0))))
    return f"it does not exist or this process may not use it; choose one of {usable}"


def _user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return "*"
