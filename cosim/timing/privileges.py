"""What a loop takes from the system to be on time, and gives back: priority, memory, a CPU, a processor kept awake.

A right that the system does not give is no error here: it is told, with how to get it.
"""

from __future__ import annotations

import ctypes
import errno
import gc
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cosim.errors import InputError, SourceLocation
from cosim.timing.pacing import Pacing

AWAKE = "/dev/cpu_dma_latency"
STATUS, GROUPS = Path("/proc/self/status"), Path("/proc/self/cgroup")
LOCK_ALL = 1 | 2  # MCL_CURRENT | MCL_FUTURE of <sys/mman.h>
# bits of <linux/capability.h>
CAP_IPC_LOCK, CAP_SYS_NICE = 14, 23
# s; how long a thread of Python may keep the others waiting while a loop in Python is on time
SWITCH = 1e-4

Undo = Callable[[], object]


@dataclass(frozen=True)
class Privilege:
    """Something that keeps a loop on time, whether it was granted, and how to get it (empty where it was)."""

    name: str
    granted: bool
    mend: str


@dataclass(frozen=True)
class _Demand:
    """take: takes it and says how to give it back, or raises OSError; mend: said after it was refused."""

    name: str
    take: Callable[[], Undo]
    mend: Callable[[], str]

    def right(self, undo: ExitStack) -> Privilege:
        if sys.platform != "linux":
            return Privilege(self.name, False, "needs Linux")
        try:
            undo.callback(self.take())
        except OSError:
            return Privilege(self.name, False, self.mend())
        return Privilege(self.name, True, "")


@contextmanager
def acquire(pacing: Pacing) -> Iterator[tuple[Privilege, ...]]:
    """Take what can be had for the calling thread, and give it back at the end.

    To be entered and left in the thread of the loop. Priority and CPU are the thread's, locked memory and the
    wakefulness of the processor are the whole process's: one loop of a process at a time takes them.
    """
    # memory comes first: locking it takes long, and is no work for a thread that nothing else may interrupt
    demands = [
        _Demand("locked memory", _lock_memory, _memory_mend),
        _Demand("processor kept awake", _keep_awake, _awake_mend),
    ]
    if pacing.cpu is not None:
        demands.append(_Demand(f"CPU {pacing.cpu}", partial(_move, pacing.cpu), _cpu_mend))
    demands.append(_Demand("fixed priority (SCHED_FIFO)", partial(_fix_priority, pacing.priority), _priority_mend))
    with ExitStack() as undo:
        yield tuple(demand.right(undo) for demand in demands)


def refuse_missing(rights: Sequence[Privilege], place: SourceLocation | str | None) -> None:
    """Raises InputError at `place`, where the rig asks for strict real time, when a right is missing."""
    missing = [f"{right.name} ({right.mend})" for right in rights if not right.granted]
    if missing:
        raise InputError(
            f"strict, but this system does not grant {'; nor '.join(missing)}; grant what is missing or leave out"
            " 'strict'",
            place,
        )


@contextmanager
def quiet_interpreter() -> Iterator[None]:
    """No garbage collection meanwhile, and short turns of Python's threads: for a loop that runs in Python."""
    collecting, interval = gc.isenabled(), sys.getswitchinterval()
    gc.collect()
    gc.disable()
    gc.freeze()
    sys.setswitchinterval(SWITCH)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
        gc.unfreeze()
        if collecting:
            gc.enable()


# --- how each is taken ---


def _fix_priority(priority: int) -> Undo:
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    return lambda: os.sched_setscheduler(0, *before)


def _move(cpu: int) -> Undo:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    return lambda: os.sched_setaffinity(0, before)


def _lock_memory() -> Undo:
    import resource

    # under a limit, memory could be locked now, but the run would fail when it takes more later
    limited = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] != resource.RLIM_INFINITY
    if limited and not _capable(CAP_IPC_LOCK):
        raise OSError(errno.ENOMEM, "the limit of locked memory is finite")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(LOCK_ALL):
        raise OSError(ctypes.get_errno(), "mlockall")
    return libc.munlockall


def _keep_awake() -> Undo:
    """No idle state from which the processor takes longer than 0 µs to wake, for as long as the file is open."""
    handle = os.open(AWAKE, os.O_WRONLY)
    try:
        os.write(handle, (0).to_bytes(4, "little"))
    except OSError:
        os.close(handle)
        raise
    return partial(os.close, handle)


# --- how each is granted ---


def _capable(bit: int) -> bool:
    """Whether this process has a capability of Linux."""
    lines = STATUS.read_text().splitlines()
    return any(line.startswith("CapEff:") and int(line.split()[1], 16) >> bit & 1 for line in lines)


def _allow(capability: str, item: str, value: str, in_container: str) -> str:
    """How a process gets a right that a capability or a limit of its user grants."""
    if os.geteuid() == 0:
        return f"start the container with --cap-add={capability} --ulimit {item}={in_container}"
    return f"add '{_user()} - {item} {value}' to /etc/security/limits.conf and log in again, or run as root"


def _memory_mend() -> str:
    if _capable(CAP_IPC_LOCK):
        return "there is not enough memory for it; end other programs"
    return _allow("IPC_LOCK", "memlock", "unlimited", "-1")


def _priority_mend() -> str:
    if not _capable(CAP_SYS_NICE):
        return _allow("SYS_NICE", "rtprio", "99", "99")
    file = f"/sys/fs/cgroup/cpu{_control_group()}/cpu.rt_runtime_us"
    return f"the control group has no time for it: echo 950000 | sudo tee {file}, or boot with rt_group_sched=0"


def _control_group() -> str:
    """The path of this process in the hierarchy of control groups that shares out the processor."""
    for line in GROUPS.read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "cpu" in controllers.split(",") and path != "/":
            return path
    return ""


def _awake_mend() -> str:
    if os.geteuid() == 0 or not os.path.exists(AWAKE):
        return f"in a container pass it with --device {AWAKE}; elsewhere use a kernel with CONFIG_CPU_IDLE"
    return f"sudo chmod o+w {AWAKE} (until the next start of the system), or run as root"


def _cpu_mend() -> str:
    usable = ", ".join(map(str, sorted(os.sched_getaffinity(0))))
    return f"it does not exist or is not for this process, which runs on {usable}; choose another"


def _user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return "*"
