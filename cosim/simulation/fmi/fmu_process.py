"""The process of an FMU: `python -m cosim.simulation.fmi.fmu_process FD PARENT` serves one FMU on the socket FD until
that is closed or the process PARENT has ended."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from cosim.core.errors import CosimError, InputError, describe_exception
from cosim.core.types import Array
from cosim.simulation.fmi.frames import StepFrames, pack, receive, send, send_numbers, unpack_coefficients
from cosim.simulation.fmi.instance import FmuOptions, Instance
from cosim.simulation.fmi.part import open_instance

PERIOD = 1.0  # s


class FmuServer:
    """Answers to messages (command, arguments …, numbers of the states that are not needed any more)."""

    def __init__(self) -> None:
        self.steps = StepFrames({}, {}, 1)
        self._instance: Instance | None = None
        self._saved: dict[int, Any] = {}
        self._number = 0

    def open(self, options: FmuOptions) -> tuple[Any, ...]:
        part = self._instance = open_instance(options)
        signals = dict(part.inputs), dict(part.outputs), part.feedthrough
        return *signals, part.order, part.repeats, part.variable, part.start_values

    def start(self, t: float, inputs: dict[str, bytes]) -> dict[str, bytes]:
        self._saved.clear()
        return pack(self._part.start(t, unpack_coefficients(inputs, self._part.inputs)))

    def agree(self, names: tuple[str, ...], rows: int) -> None:
        """Steps have these inputs from now on, polynomials (rows, ...)."""
        self.steps = StepFrames({name: self._part.inputs[name] for name in names}, self._part.outputs, rows)

    def step(self, given: Array) -> Array:
        return self.steps.pack_outputs(self._part.step(*self.steps.unpack_inputs(given)))

    def save(self) -> int:
        self._number += 1
        self._saved[self._number] = self._part.save()
        return self._number

    def restore(self, number: int) -> None:
        self._part.restore(self._saved[number])

    def release(self, numbers: tuple[int, ...]) -> None:
        for number in numbers:
            self._saved.pop(number, None)

    def close(self) -> None:
        self._saved.clear()
        if self._instance is not None:
            self._instance.close()

    @property
    def _part(self) -> Instance:
        assert self._instance is not None
        return self._instance


def serve(connection: socket.socket) -> None:
    """Answer messages until the other end is closed."""
    server = FmuServer()
    try:
        while True:
            message = receive(connection, server.steps.given)
            if isinstance(message, np.ndarray):
                answer = _answer(server.step, message)
            else:
                command, *arguments, released = message
                server.release(released)
                answer = _answer(getattr(server, command), *arguments)
            if isinstance(answer[-1], np.ndarray):
                send_numbers(connection, answer[-1])
            else:
                send(connection, answer)
    except (EOFError, OSError):
        pass  # the run has ended
    finally:
        server.close()


def _answer(command: Callable[..., object], *arguments: object) -> tuple[object, ...]:
    try:
        return "OK", command(*arguments)
    except CosimError as error:
        kind = "InputError" if isinstance(error, InputError) else "RunError"
        return kind, error.what, error.place
    except Exception as error:  # a bug: its line, not a silent end
        return "RunError", describe_exception(error)


def end_with(parent: int) -> None:
    """End this process when its parent has ended, an FMU that hangs included. parent: its number, from the parent: it
    may have ended before this process could ask."""
    while os.getppid() == parent:
        time.sleep(PERIOD)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=end_with, args=(int(sys.argv[2]),), daemon=True).start()
    serve(socket.socket(fileno=int(sys.argv[1])))
