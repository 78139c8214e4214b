"""Properties of a machine that matter to real-time loops, read from its system files.

Every path is relative to a root, `/` for the machine itself. Unknown properties are None or empty.
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
# suffixes of CONFIG_PREEMPT, the strongest first, and the value of the kernel's `preempt=` that means the same
PREEMPTION_MODELS = {"RT": "realtime", "LAZY": "lazy", "VOLUNTARY": "voluntary", "NONE": "none", "": "full"}


@dataclass(frozen=True)
class IdleState:
    """An idle state of a processor: its name, its exit latency [s], whether it is enabled."""

    name: str
    latency: float
    enabled: bool


@dataclass(frozen=True)
class HostFacts:
    """The settings of the kernel and the processors of a machine that bear on real-time loops.

    preemption: a value of `PREEMPTION_MODELS`; dynamic_preemption: it can be chosen at boot; realtime_fraction: the
    largest fraction of the time for threads of fixed priority, None for no limit; load_average: of one minute.
    """

    kernel: str
    preemption: str | None
    dynamic_preemption: bool
    virtual: bool
    clock_source: str | None
    clock_sources: tuple[str, ...]
    cpus: tuple[int, ...]
    isolated: tuple[int, ...]
    governors: dict[int, str]
    idle_states: tuple[IdleState, ...]
    realtime_fraction: float | None
    load_average: float | None


def read_host(root: Path) -> HostFacts:
    kernel, version = (_word(root / f"proc/sys/kernel/{name}") or "" for name in ("osrelease", "version"))
    cpus = _parse_cpu_list(_word(root / CPUS / "online")) or tuple(range(os.cpu_count() or 1))
    governors = {cpu: _word(root / CPUS / f"cpu{cpu}/cpufreq/scaling_governor") for cpu in cpus}
    load = _word(root / "proc/loadavg")
    return HostFacts(
        kernel=kernel,
        preemption=_preemption(root, kernel, version),
        dynamic_preemption="PREEMPT_DYNAMIC" in version,
        virtual=_virtual(root),
        clock_source=_word(root / CLOCKS / "current_clocksource"),
        clock_sources=tuple((_word(root / CLOCKS / "available_clocksource") or "").split()),
        cpus=cpus,
        isolated=_parse_cpu_list(_word(root / CPUS / "isolated")),
        governors={cpu: governor for cpu, governor in governors.items() if governor},
        idle_states=tuple(_idle_states(root / CPUS / f"cpu{cpus[0]}/cpuidle")),
        realtime_fraction=_realtime_fraction(root),
        load_average=float(load.split()[0]) if load else None,
    )


def steal_time(root: Path) -> tuple[int, int]:
    """(steal time, total time) of all CPUs since the system started [jiffies]; steal: taken by the host of a VM."""
    first = (_text(root / "proc/stat") or "cpu").splitlines()[0]
    fields = [int(field) for field in first.split()[1:9]]  # later fields are parts of these
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
    """The preemption model of the kernel, from the most reliable source that can be read."""
    if _word(root / "sys/kernel/realtime") == "1" or "PREEMPT_RT" in version:
        return "realtime"
    chosen = re.search(r"\((\w+)\)", _word(root / "sys/kernel/debug/sched/preempt") or "")
    requested = re.search(r"(?:^|\s)preempt=(\w+)", _word(root / "proc/cmdline") or "")
    if found := chosen or requested:
        return found[1]
    built = _configuration(root, kernel)
    return next(
        (word for name, word in PREEMPTION_MODELS.items() if f"CONFIG_PREEMPT{name and '_' + name}=y" in built), None
    )


def _configuration(root: Path, kernel: str) -> list[str]:
    """The lines of the configuration that the kernel was built with."""
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


def _realtime_fraction(root: Path) -> float | None:
    runtime, period = (_word(root / f"proc/sys/kernel/sched_rt_{name}_us") for name in ("runtime", "period"))
    if runtime is None or int(runtime) < 0:
        return None
    return int(runtime) / int(period or 1_000_000)
