"""Switching drives on together: those that are on already hold while the others take their time.

A drive that is on and not commanded stops by its own watchdog, so whoever switches several on has to command the first
until the last is ready.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from cosim.timing.clocks import native_clock
from cosim.types import Driver, JointCommand, JointState

HEAR_NS = 2_000_000  # that an answer is waited for
VALID_NS = 50_000_000
PAUSE = 0.005  # s between two commands


def hold(driver: Driver) -> None:
    """One command that leaves the joints alone: no effort, where they are. Drives that did not say where they are get
    none: one that follows positions would go to 0. Raises what the driver raises."""
    now, n = native_clock().now, len(driver.joints)
    state, command = JointState.zeros(n), JointCommand.zeros(n)
    driver.read(state, now() + HEAR_NS)
    if not state.t_ns:
        return
    command.position[:] = state.position
    command.valid_until_ns = now() + VALID_NS
    driver.write(command, now() + HEAR_NS)


def enable_all(drivers: Sequence[Driver], enable: Callable[[int], object]) -> None:
    """Call enable(k) for every driver at the same time; drivers that are on hold until all are. Raises the first error,
    when none is at work any more; stopping them is the caller's."""
    errors: dict[int, BaseException] = {}
    done: list[int] = []

    def work(k: int) -> None:
        try:
            enable(k)
            done.append(k)
        except BaseException as error:
            errors[k] = error

    threads = [threading.Thread(target=work, args=(k,), daemon=True) for k in range(len(drivers))]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        if not errors:
            for k in tuple(done):
                try:
                    hold(drivers[k])
                except Exception as error:
                    errors[k] = error
        threads[next((k for k, thread in enumerate(threads) if thread.is_alive()), 0)].join(PAUSE)
    for k in sorted(errors):
        raise errors[k]
