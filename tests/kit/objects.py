"""The code of a rig for the processor of this machine, called as C calls it."""

from __future__ import annotations

import ctypes
from copy import copy

import numpy as np

from cosim.apps.deploy.check import NativeCode
from cosim.apps.deploy.object_files import object_code_of, prototypes
from cosim.core.compile.compilation import compiled_here
from cosim.core.compile.freestanding import with_signed_zeros
from cosim.core.compile.targets import HOST, targets

NAME = "rig"
TYPES = {
    **{kind: ctypes.c_void_p for kind in ("double *", "const double *")},
    **{"int64_t ": ctypes.c_int64, "int32_t ": ctypes.c_int32, "int32_t": ctypes.c_int32, "void": None},
}


class ObjectRig:
    """A memory, and the functions on it: `call("read", tick)`."""

    def __init__(self, rig):
        self.model = rig.tick_model
        self.code = object_code_of(rig, NAME)
        functions = prototypes(self.model, NAME)
        content = compiled_here(with_signed_zeros(self.code.ir), targets()[HOST])
        self._native = NativeCode(content, [each.name for each in functions])
        self._functions = {
            each.name.removeprefix(f"{NAME}_"): self._native.function(
                each.name, TYPES[each.result], *(TYPES[kind] for kind, _ in each.arguments)
            )
            for each in functions
        }
        self.memory = np.zeros(self.code.size)

    def copy(self):
        """The same code on a copy of the memory."""
        found = copy(self)
        found.memory = self.memory.copy()
        return found

    def call(self, name, *arguments):
        return self._functions[name](self.memory.ctypes.data, *arguments)

    def place(self, *path):
        """A part of the memory, to be read or written in place."""
        where, shape = self.model.layout.place(*path)
        return self.memory[where].reshape(shape)

    def stages(self, tick):
        """A tick by its stages; what the guard says."""
        said = 0
        for task in self.model.tasks:
            if task.loop is not None:
                self.call(f"controller_{task.name}", tick)
            elif task.name == "read":
                self.call("read", tick)
            elif task.name == "guard":
                said = self.call("guard")
            elif task.calls:
                self.call(task.name)
        return said

    def signals(self):
        found = np.zeros(len(self.model.signals.names))
        self._functions["signals"](self.memory.ctypes.data, found.ctypes.data)
        return found
