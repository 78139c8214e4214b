"""A clock for runs on time that take none."""

import time

from cosim.timing.clock_sources import PythonClock

MS = 1_000_000  # ns


class FakeClock(PythonClock):
    """Waits are over at once, and a look at it takes 1 µs. At wait number `held` it lets wait until `released`."""

    def __init__(self):
        super().__init__()
        self.time, self.waits, self.held, self.released = 1_000 * MS, 0, -1, lambda: True

    def now(self):
        self.time += 1_000
        return self.time

    def cpu(self):
        return self.time

    def wait(self, due_ns):
        while self.waits == self.held and not self.released():
            time.sleep(1e-4)
        self.waits += 1
        self.time = max(self.time, due_ns)
        return self.time
