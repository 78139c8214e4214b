"""Shared by the tests of doctor."""

from __future__ import annotations

import numpy as np

from cosim.apps.doctor import assess
from cosim.apps.doctor.latency import WakeupLatencies
from cosim.execution.timing.privileges import Privilege

CPUS, CLOCK = "sys/devices/system/cpu", "sys/devices/system/clocksource/clocksource0"
# a machine with nothing to change
GOOD = {
    "proc/sys/kernel/osrelease": "6.12.1-rt\n",
    "proc/sys/kernel/version": "#1 SMP PREEMPT_RT Mon\n",
    "proc/sys/kernel/sched_rt_runtime_us": "-1\n",
    "proc/sys/kernel/sched_rt_period_us": "1000000\n",
    "proc/cpuinfo": "processor\t: 0\nflags\t\t: fpu tsc\n\nprocessor\t: 1\nflags\t\t: fpu tsc\n",
    "proc/cmdline": "quiet\n",
    "proc/loadavg": "0.10 0.20 0.30 1/86 774\n",
    "proc/stat": "cpu  10 20 30 40 50 60 70 80 5 5\ncpu0 1 1 1 1 1 1 1 1 0 0\n",
    f"{CPUS}/online": "0-3\n",
    f"{CPUS}/isolated": "\n",
    f"{CLOCK}/current_clocksource": "tsc\n",
    f"{CLOCK}/available_clocksource": "tsc hpet acpi_pm\n",
    **{f"{CPUS}/cpu{k}/cpufreq/scaling_governor": "performance\n" for k in range(4)},
    **{f"{CPUS}/cpu0/cpuidle/state{k}/name": f"C{k}\n" for k in (0, 2, 10)},
    **{f"{CPUS}/cpu0/cpuidle/state{k}/latency": f"{10 * k}\n" for k in (0, 2, 10)},
    **{f"{CPUS}/cpu0/cpuidle/state{k}/disable": f"{k == 2:d}\n" for k in (0, 2, 10)},
}
PRIVILEGES = (Privilege("locked memory", True, ""), Privilege("fixed priority", True, ""))
US = 1000
# latencies, ns: low, with outliers, often high
LOW, OUTLIERS, HIGH = [20 * US] * 1000, [20 * US] * 999 + [3000 * US], [20 * US] * 900 + [400 * US] * 100


class Instruments:
    """Known measurements of a machine; the host takes time while it is measured."""

    def __init__(self, late=LOW, cost=2e-8, privileges=PRIVILEGES, stat=None):
        self.late, self.cost, self.privileges, self.stat, self.requested = late, cost, privileges, stat, None

    def clock_cost(self):
        return self.cost

    def wakeups(self, seconds, cpu, progress):
        self.requested = seconds, cpu, progress
        if self.stat is not None:
            path, text = self.stat
            path.write_text(text)
        methods = {"compiled loop": [70 * US, 90 * US], "with privileges": self.late, "Python sleep": [5000 * US]}
        found = {method: np.array(late, dtype=np.int64) for method, late in methods.items()}
        return WakeupLatencies(found, self.privileges)


def recommendations(machine, files=None, cpu=None, **measured):
    return assess(machine(**(files or {})), 1.0, cpu, Instruments(**measured)).recommendations
