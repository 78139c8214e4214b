"""Access to the control table of an emulated drive: whole registers, some of them through indirect addresses."""

from __future__ import annotations

from cosim.plugins.drivers.dynamixel import codec
from cosim.plugins.drivers.dynamixel import tables as t

Answer = tuple[int, bytes]  # error number, data


class Memory:
    """The bytes of a control table; the drive defines the valid values and the effects of a write."""

    def __init__(self, model: t.ServoModel) -> None:
        self.registers = t.registers(model)
        self.table = bytearray(t.TABLE_END)
        for register in self.registers.values():
            self.put(register, register.initial)

    def get(self, register: t.Register) -> int:
        return register.unpack(self.table)

    def put(self, register: t.Register, value: int) -> None:
        self.table[register.address : register.address + register.size] = register.pack(value)

    def read(self, address: int, size: int) -> Answer:
        end = address + size
        if size == 0 or end > t.TABLE_END:
            return codec.NO_ACCESS, b""
        data = bytes(self.table[address:end])
        for _, first, count in t.INDIRECT:
            if address < first + count and end > first:
                return 0, bytes(self.table[self._target(a)] for a in range(address, end))
        return 0, data

    def write(self, address: int, data: bytes) -> int:
        """Write all of the data or nothing; the error number."""
        error = codec.NO_ACCESS if not data else 0
        changes: list[tuple[t.Register, int]] = []
        for start, run in self._runs(address, data):
            at, end = start, start + len(run)
            while at < end and not error:
                register = self.registers.get(at)
                if register is None:
                    within = any(0 < at - r.address < r.size for r in self.registers.values())
                    return codec.BAD_LENGTH if within else codec.NO_ACCESS
                at += register.size
                if at > end:
                    return codec.BAD_LENGTH
                value = register.unpack(run, start)
                error = self.write_error(register, value)
                changes.append((register, value))
        if error:
            return error
        for register, value in changes:
            self.change(register, value)
        return 0

    def _target(self, address: int) -> int:
        """The address to which an indirect data register is mapped."""
        for addresses, first, count in t.INDIRECT:
            if first <= address < first + count:
                at = addresses + 2 * (address - first)
                return min(self.table[at] | self.table[at + 1] << 8, t.TABLE_END - 1)
        return address

    def _runs(self, address: int, data: bytes) -> list[tuple[int, bytes]]:
        """(address, data) of contiguous bytes in the table; data written to indirect registers may be split."""
        runs: list[tuple[int, bytearray]] = []
        for k, byte in enumerate(data):
            target = self._target(address + k)
            if not runs or target != runs[-1][0] + len(runs[-1][1]):
                runs.append((target, bytearray()))
            runs[-1][1].append(byte)
        return [(start, bytes(run)) for start, run in runs]

    def write_error(self, register: t.Register, value: int) -> int:
        """The error number of writing this value, 0 if it is accepted."""
        raise NotImplementedError

    def change(self, register: t.Register, value: int) -> None:
        """Write a value, with its effects."""
        raise NotImplementedError
