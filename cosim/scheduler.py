"""What carries a rig from tick to tick: the native engine, and the Python loop around drivers.

Both take the ticks in the same order, read → controllers → guard → write → step, and leave the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Protocol

import numpy as np

from cosim import guard
from cosim.compile import Port, Routine, compile
from cosim.compile.iterate import Iteration
from cosim.errors import RunError, where_raised
from cosim.simulation import Simulation
from cosim.types import COMMAND, FEEDBACK, Driver, JointCommand, JointState, requested_effort
from cosim.verdict import explain
from cosim.world import World


class Engine(Protocol):
    """Takes a rig forward; after a fault or `close` its drivers are stopped."""

    def run(self, count: int) -> tuple[np.ndarray, str]:
        """The rows (k, nr) of the next `count` ticks, fewer when something stopped the run: then it says what."""
        ...

    def close(self) -> None: ...


class NativeEngine:
    """The whole tick in machine code; Python sees blocks of finished ticks."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        shapes = [(), simulation.parameters.shape, (simulation.layout.size,)]
        self._ticks = Iteration(Routine(simulation.tick, shapes, "tick"))
        self._state = simulation.layout.pack(simulation.initial())
        self._parameters = simulation.parameters
        self._number = 0

    def run(self, count: int) -> tuple[np.ndarray, str]:
        rows, stopped = self._ticks(self._number, count, self._parameters, self._state)
        self._number += len(rows)
        return rows, explain(self._simulation, self._number - 1, rows[-1]) if stopped else ""

    def close(self) -> None:
        """Nothing is held: the simulated drives end with the engine."""


class PythonEngine:
    """The loop in Python around drivers; what can be compiled still is, unless the simulation says not to."""

    def __init__(self, simulation: Simulation, world: World, drivers: Sequence[tuple[Driver, np.ndarray]]) -> None:
        """drivers: each with the places (n,) of its joints in the model's order; together they cover all."""
        self.simulation, self.world, self.drivers = simulation, world, drivers
        nv, interpret = simulation.nv, not simulation.compiled
        wide = [Port(name, (nv,)) for name in ("position", "velocity", "effort", "known")]
        self._updates = []
        for loop, update in zip(simulation.loops, simulation.controllers, strict=True):
            if loop.name not in simulation.untraceable:
                p, x = Port("p", loop.tunables.values.shape), Port("x", (loop.layout.size,))
                told = [Port(name, loop.index.shape) for name in COMMAND]
                update = compile(update, [Port("t", ()), p, x, *wide], f"controller_{loop.name}", [x, *told], interpret)
            self._updates.append(update)
        self._trouble = simulation.trouble
        if simulation.plant.model.constraint_rows or simulation.plant.switches:
            inputs = [Port("t", ()), Port("x", (simulation.nx,))]
            self._trouble = compile(simulation.trouble, inputs, "trouble", [Port("trouble", ())], interpret)
        self._states = [loop.layout.pack(loop.block.initial()) for loop in simulation.loops]
        self._command = {name: np.zeros(nv) for name in COMMAND}
        self._measured = [JointState.zeros(len(index)) for _, index in drivers]
        self._tick = 0
        try:
            for driver, _ in drivers:
                driver.open()
                driver.enable("effort")
        except BaseException:
            self.close()
            raise

    def run(self, count: int) -> tuple[np.ndarray, str]:
        rows = np.empty((count, self.simulation.row.size))
        for k in range(count):
            try:
                # a diverging run is reported by the guard, not by warnings of numpy
                with np.errstate(all="ignore"):
                    stopped = self._run_tick(rows[k])
            except RunError as error:
                self.stop()
                return rows[:k], f"stopped at tick {self._tick} (t = {self._time:.6g} s): {error}"
            if stopped:
                return rows[: k + 1], explain(self.simulation, self._tick, rows[k])
        return rows, ""

    @property
    def _time(self) -> float:
        return self._tick * self.simulation.step

    def _run_tick(self, row: np.ndarray) -> bool:
        simulation = self.simulation
        t_ns, t = self._tick * simulation.step_ns, self._time
        feedback = self._read(t_ns)
        self._control(t, feedback)
        command, verdict = guard.check(simulation.limits, feedback, self._command)
        self._command = command
        row[:] = simulation.row_of(self.world.plant, requested_effort(command, feedback), feedback, verdict)
        if verdict.any() or self._trouble(t, self.world.plant):
            self.stop()
            return True
        for driver, index in self.drivers:
            fields = (command[name][index] for name in COMMAND)
            with _of(driver):
                driver.write(JointCommand(*fields, valid_until_ns=t_ns + 2 * simulation.step_ns), t_ns)
        self.world.advance(t_ns)
        self._tick += 1
        return False

    def _read(self, t_ns: int) -> dict[str, np.ndarray]:
        feedback = {name: np.zeros(self.simulation.nv) for name in FEEDBACK}
        for (driver, index), state in zip(self.drivers, self._measured, strict=True):
            with _of(driver):
                driver.read(state, t_ns)
            for k in np.flatnonzero(state.fault)[:1]:
                raise RunError(
                    f"the drive of joint '{driver.joints[k]}' reports fault {state.fault[k]}; clear it first"
                )
            for name in FEEDBACK:
                feedback[name][index] = getattr(state, name)
        return feedback

    def _control(self, t: float, feedback: dict[str, np.ndarray]) -> None:
        known = np.asarray(self.simulation.known_acceleration(t), dtype=float)
        for k, (loop, update) in enumerate(zip(self.simulation.loops, self._updates, strict=True)):
            if self._tick % loop.ticks:
                continue
            try:
                self._states[k], *told = update(
                    t, self.simulation.parameters[loop.own], self._states[k], *feedback.values(), known
                )
            except Exception as error:  # a controller may be the user's own: anything can happen in it
                raise RunError(f"controller '{loop.name}' failed: {_told(error)}") from error
            for name, values in zip(COMMAND, told, strict=True):
                self._command[name][loop.index] = values

    def stop(self) -> None:
        """Every driver is stopped, whatever the others do."""
        for driver, _ in self.drivers:
            with suppress(Exception):
                driver.stop()

    def close(self) -> None:
        """Every driver is stopped, then let go of."""
        self.stop()
        for driver, _ in self.drivers:
            with suppress(Exception):
                driver.close()


@contextmanager
def _of(driver: Driver) -> Iterator[None]:
    """Whatever goes wrong in a driver ends the run with its joints named."""
    try:
        yield
    except RunError:
        raise  # the driver said what is wrong
    except Exception as error:
        raise RunError(f"the driver of {', '.join(driver.joints)} failed: {_told(error)}") from error


def _told(error: Exception) -> str:
    """An exception in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())} ({where_raised(error)})"
