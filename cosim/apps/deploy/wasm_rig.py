"""A rig as a module of WebAssembly that runs, made of an object of LLVM without a linker.

An object refers to its own functions, types and data by their final numbers already: with one object nothing has to be
relocated. What is left is that memory and stack pointer become the module's own, that functions are exported, and that
sections for linkers go. Formats: WebAssembly Core Specification 2.0, chapter 5, and the conventions of its tools for
object files (Linking.md, version 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from cosim.apps.deploy.description import description_of
from cosim.apps.deploy.tick_code import FUNCTIONS, LANE_FUNCTIONS, tick_code
from cosim.core.compile.compilation import compiled_here
from cosim.core.compile.object_code import CodeTarget
from cosim.core.compile.stack_array import stack_need
from cosim.rig.wiring.wired_rig import WiredRig

PAGE = 65536  # bytes
FRAMES = 1 << 12  # bytes of the stack beside its arrays
ALIGNMENT = 64
_MAGIC = b"\0asm\1\0\0\0"
_I32, _MUTABLE, _CONST_I32, _END = 0x7F, 1, 0x41, 0x0B
_SYMBOL_TABLE = 8
_UNDEFINED = 0x10
_HIDDEN = 0x02 | 0x04  # local to the object, or to the module
_NAMED = 0x40  # an undefined symbol with a name of its own


def wasm_rig(rig: WiredRig, name: str, machine: CodeTarget, lanes: int = 1) -> tuple[WasmModule, dict[str, Any]]:
    """(module, description) of a rig that `exportable.check_rig` accepts; name: with which its functions begin; lanes:
    see `tick_code`."""
    code = tick_code(rig.tick_model, name, lanes=lanes)
    functions = [f"{name}_{function}" for function in (*FUNCTIONS, *(LANE_FUNCTIONS if lanes > 1 else ()))]
    module = module_of(compiled_here(code.ir, machine), functions, stack_need(code.ir))
    return module, description_of(rig, code, machine, functions) | {"lanes": lanes, "imports": list(module.imports)}


class _WasmSection(IntEnum):
    CUSTOM, TYPE, IMPORT, FUNCTION, TABLE, MEMORY, GLOBAL, EXPORT, START, ELEMENT, CODE, DATA, DATA_COUNT = range(13)


class _EntityKind(IntEnum):
    """Of imports and exports."""

    FUNCTION, TABLE, MEMORY, GLOBAL = range(4)


@dataclass(frozen=True)
class WasmModule:
    """A module of WebAssembly, with the functions that its host has to provide. imports: names of functions of the C
    library, from the module `env`."""

    code: bytes
    imports: tuple[str, ...]


@dataclass
class _WasmReader:
    data: bytes
    at: int = 0

    def take(self, count: int) -> bytes:
        self.at += count
        return self.data[self.at - count : self.at]

    def byte(self) -> int:
        return self.take(1)[0]

    def number(self) -> int:
        """Unsigned, in the LEB128 code."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value

    def name(self) -> str:
        return self.take(self.number()).decode()

    @property
    def more(self) -> bool:
        return self.at < len(self.data)


@dataclass
class _WasmObject:
    """An object file of LLVM in its sections. sections: content by kind; linking: of the section for linkers."""

    sections: dict[int, bytes] = field(default_factory=dict)
    linking: bytes = b""

    @staticmethod
    def read(data: bytes) -> _WasmObject:
        assert data[: len(_MAGIC)] == _MAGIC
        found, reader = _WasmObject(), _WasmReader(data, len(_MAGIC))
        while reader.more:
            kind, content = reader.byte(), reader.take(reader.number())
            if kind != _WasmSection.CUSTOM:
                found.sections[kind] = content
                continue
            custom = _WasmReader(content)
            if custom.name() == "linking":
                found.linking = content[custom.at :]
        return found


def module_of(data: bytes, exported: Sequence[str], stack: int) -> WasmModule:
    """data: an object that calls functions of the C library at most; exported: names of its functions; stack: bytes of
    the arrays on it. The module exports them, `memory`, and the global `__heap_base`, from which on memory is free."""
    source = _WasmObject.read(data)
    kept, imports = _function_imports(source)
    base = -(-_data_end(source) // ALIGNMENT) * ALIGNMENT
    heap = -(-(base + stack + FRAMES) // ALIGNMENT) * ALIGNMENT
    numbers = _functions(source)
    exports = [(name, _EntityKind.FUNCTION, numbers[name]) for name in exported]
    exports += [("memory", _EntityKind.MEMORY, 0), ("__heap_base", _EntityKind.GLOBAL, 1)]
    sections = source.sections | {
        _WasmSection.IMPORT: _vector(kept),
        _WasmSection.MEMORY: _vector([b"\0" + _leb(-(-heap // PAGE))]),
        _WasmSection.GLOBAL: _vector([_global(heap, _MUTABLE), _global(heap, 0)]),  # the stack grows down
        _WasmSection.EXPORT: _vector([_text(name) + bytes([kind]) + _leb(number) for name, kind, number in exports]),
    }
    # the number of data sections comes before the code, which uses it
    last = [_WasmSection.DATA_COUNT, _WasmSection.CODE, _WasmSection.DATA]
    order = [*(kind for kind in _WasmSection if kind not in last), *last]
    parts = (bytes([kind]) + _leb(len(sections[kind])) + sections[kind] for kind in order if kind in sections)
    return WasmModule(_MAGIC + b"".join(parts), tuple(imports))


def _function_imports(source: _WasmObject) -> tuple[list[bytes], list[str]]:
    """(entries, names) of the functions among the imports: memory, table and stack pointer become the module's own."""
    reader, entries, names = _WasmReader(source.sections.get(_WasmSection.IMPORT, b"\0")), list[bytes](), list[str]()
    for _ in range(reader.number()):
        begin = reader.at
        reader.name()
        name, kind = reader.name(), reader.byte()
        if kind == _EntityKind.FUNCTION:
            reader.number()
            entries.append(reader.data[begin : reader.at])
            names.append(name)
        elif kind == _EntityKind.GLOBAL:
            assert name == "__stack_pointer", name
            reader.take(2)
        else:
            if kind == _EntityKind.TABLE:
                reader.byte()
            for _ in range(1 + (reader.number() & 1)):
                reader.number()
    return entries, names


def _functions(source: _WasmObject) -> dict[str, int]:
    """Numbers of the functions that the object defines for others."""
    found, reader = dict[str, int](), _WasmReader(source.linking)
    reader.number()  # version
    while reader.more:
        kind, content = reader.byte(), _WasmReader(reader.take(reader.number()))
        if kind == _SYMBOL_TABLE:
            for _ in range(content.number()):
                _symbol(content, found)
    return found


def _symbol(reader: _WasmReader, found: dict[str, int]) -> None:
    kind, flags = reader.byte(), reader.number()
    if kind == 1:  # data
        reader.name()
        if not flags & _UNDEFINED:
            for _ in range(3):
                reader.number()
        return
    number = reader.number()
    if kind == 3 or (flags & _UNDEFINED and not flags & _NAMED):  # a section has no name
        return
    name = reader.name()
    if kind == 0 and not flags & (_UNDEFINED | _HIDDEN):
        found[name] = number


def _data_end(source: _WasmObject) -> int:
    """The first address after all data."""
    reader, end = _WasmReader(source.sections.get(_WasmSection.DATA, b"\0")), 0
    for _ in range(reader.number()):
        active, instruction = reader.number(), reader.byte()
        assert (active, instruction) == (0, _CONST_I32)
        address = reader.number()  # the signed code of a number that is not negative reads the same
        assert reader.byte() == _END
        size = reader.number()
        reader.take(size)
        end = max(end, address + size)
    return end


def _global(value: int, mutable: int) -> bytes:
    return bytes([_I32, mutable, _CONST_I32]) + _signed_leb(value) + bytes([_END])


def _vector(entries: Sequence[bytes]) -> bytes:
    return _leb(len(entries)) + b"".join(entries)


def _text(name: str) -> bytes:
    return _leb(len(name.encode())) + name.encode()


def _leb(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(0x80 | value & 0x7F)
        value >>= 7
    return bytes([*out, value])


def _signed_leb(value: int) -> bytes:
    """Of a number that is not negative: the last byte must leave the sign clear."""
    code = bytearray(_leb(value))
    if code[-1] & 0x40:
        code[-1] |= 0x80
        code.append(0)
    return bytes(code)
