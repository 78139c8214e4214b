"""Enabling several drives together: enabled drives get hold commands until all are enabled.

The watchdog of an enabled drive stops it if no command arrives, and enabling another drive may take longer than that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from cosim.timing.clocks import native_clock
from cosim.types import Driver, JointCommand, JointState

REPLY_NS = 2_000_000  # deadline of a reply
VALID_NS = 50_000_000
PAUSE = 0.005  # s between hold commands


def send_hold_command(driver: Driver) -> None:
    """Command the measured positions and no effort. Drives that report no position get no command, because a drive in
    position mode would move to 0. Raises the errors of the driver."""
    now, n = native_clock().now, len(driver.joints)
    state, command = JointState.zeros(n), JointCommand.zeros(n)
    driver.read(state, now() + REPLY_NS)
    if not state.t_ns:
        return
    command.position[:] = state.position
    command.valid_until_ns = now() + VALID_NS
    driver.write(command, now() + REPLY_NS)


def enable_all(drivers: Sequence[Driver], enable: Callable[[int], object]) -> None:
    """Call enable(k) for all drivers in parallel; enabled drivers get hold commands until all are enabled. Raises the
    first error after all calls have returned; the caller stops the drivers."""
    errors: dict[int, BaseException] = {}
    enabled: list[int] = []

    def call(k: int) -> None:
        try:
            enable(k)
            enabled.append(k)
        except BaseException as error:
            errors[k] = error

    threads = [threading.Thread(target=call, args=(k,), daemon=True) for k in range(len(drivers))]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        if not errors:
            for k in tuple(enabled):
                try:
                    send_hold_command(drivers[k])
                except Exception as error:
                    errors[k] = error
        threads[next((k for k, thread in enumerate(threads) if thread.is_alive()), 0)].join(PAUSE)
    for k in sorted(errors):
        raise errors[k]
