"""What a machine says of itself that matters to loops on time, read from its files and nothing changed.

Every path is taken below a root, `/` for the machine itself. What a machine does not tell is None or empty.
"""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

CPUS = "sys/devices/system/cpu"
CLOCKS = "sys/devices/system/clocksource/clocksource0"
# options of a kernel's configuration, the strongest first, and the word of its `preempt=` that means the same
PREEMPTION_MODELS = {"RT": "realtime", "LAZY": "lazy", "VOLUNTARY": "voluntary", "NONE": "none", "": "full"}


@dataclass(frozen=True)
class IdleState:
    """A state in which a processor waits: its name, how long it takes to wake from it [s], whether it is used."""

    name: str
    latency: float
    used: bool


@dataclass(frozen=True)
class MachineFacts:
    """preemption: a value of `PREEMPTION_MODELS`; dynamic: it can be chosen at boot; throttle: largest fraction of the
    time for threads of fixed priority; load: number of runnable threads, mean over one minute."""

    kernel: str
    preemption: str | None
    dynamic: bool
    virtual: bool
    clock: str | None
    clocks: tuple[str, ...]
    cpus: tuple[int, ...]
    isolated: tuple[int, ...]
    governors: dict[int, str]
    idle: tuple[IdleState, ...]
    throttle: float | None
    load: float | None


def read_machine(root: Path) -> MachineFacts:
    kernel, version = (_word(root / f"proc/sys/kernel/{name}") or "" for name in ("osrelease", "version"))
    cpus = _parse_cpu_list(_word(root / CPUS / "online")) or tuple(range(os.cpu_count() or 1))
    governors = {cpu: _word(root / CPUS / f"cpu{cpu}/cpufreq/scaling_governor") for cpu in cpus}
    load = _word(root / "proc/loadavg")
    return MachineFacts(
        kernel=kernel,
        preemption=_preemption(root, kernel, version),
        dynamic="PREEMPT_DYNAMIC" in version,
        virtual=_virtual(root),
        clock=_word(root / CLOCKS / "current_clocksource"),
        clocks=tuple((_word(root / CLOCKS / "available_clocksource") or "").split()),
        cpus=cpus,
        isolated=_parse_cpu_list(_word(root / CPUS / "isolated")),
        governors={cpu: governor for cpu, governor in governors.items() if governor},
        idle=tuple(_idle_states(root / CPUS / f"cpu{cpus[0]}/cpuidle")),
        throttle=_throttle(root),
        load=float(load.split()[0]) if load else None,
    )


def steal_time(root: Path) -> tuple[int, int]:
    """Time since the start, on all CPUs [ticks of the system]: what the host of a virtual machine took, all of it."""
    first = (_text(root / "proc/stat") or "cpu").splitlines()[0]
    fields = [int(field) for field in first.split()[1:9]]  # those behind are parts of these
    return (fields[7], sum(fields)) if len(fields) == 8 else (0, 0)


def cpu_list(cpus: Iterable[int]) -> str:
    """`0-3,6` for 0, 1, 2, 3, 6."""
    runs: list[list[int]] = []
    for cpu in sorted(cpus):
        if runs and cpu == runs[-1][1] + 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def _parse_cpu_list(text: str | None) -> tuple[int, ...]:
    """The inverse of `cpu_list`."""
    found: list[int] = []
    for part in (text or "").split(","):
        if part:
            first, _, last = part.partition("-")
            found += range(int(first), int(last or first) + 1)
    return tuple(found)


def _text(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return None


def _word(path: Path) -> str | None:
    return (_text(path) or "").strip() or None


def _preemption(root: Path, kernel: str, version: str) -> str | None:
    """How readily the kernel interrupts itself, from the surest source that can be read."""
    if _word(root / "sys/kernel/realtime") == "1" or "PREEMPT_RT" in version:
        return "realtime"
    chosen = re.search(r"\((\w+)\)", _word(root / "sys/kernel/debug/sched/preempt") or "")
    asked = re.search(r"(?:^|\s)preempt=(\w+)", _word(root / "proc/cmdline") or "")
    if found := chosen or asked:
        return found[1]
    built = _configuration(root, kernel)
    return next(
        (word for name, word in PREEMPTION_MODELS.items() if f"CONFIG_PREEMPT{name and '_' + name}=y" in built), None
    )


def _configuration(root: Path, kernel: str) -> list[str]:
    """The lines that the kernel was built with."""
    packed = root / "proc/config.gz"
    try:
        text = gzip.decompress(packed.read_bytes()).decode()
    except OSError:
        text = _text(root / f"boot/config-{kernel}") or ""
    return text.splitlines()


def _virtual(root: Path) -> bool:
    flags = re.search(r"^flags\s*:(.*)$", _text(root / "proc/cpuinfo") or "", re.MULTILINE)
    hosted = ("sys/hypervisor/type", "proc/device-tree/hypervisor/compatible")
    return bool(flags and "hypervisor" in flags[1].split()) or any(_word(root / path) for path in hosted)


def _idle_states(folder: Path) -> Iterable[IdleState]:
    for state in sorted(folder.glob("state*"), key=lambda path: int(path.name[5:])):
        name, latency, disabled = (_word(state / what) for what in ("name", "latency", "disable"))
        yield IdleState(name or state.name, int(latency or 0) / 1e6, disabled != "1")


def _throttle(root: Path) -> float | None:
    runtime, period = (_word(root / f"proc/sys/kernel/sched_rt_{name}_us") for name in ("runtime", "period"))
    if runtime is None or int(runtime) < 0:
        return None
    return int(runtime) / int(period or 1_000_000)
