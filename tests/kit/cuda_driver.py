"""What of CUDA's driver the rollouts call, on the CPU: the same functions, arguments and results as in
`cuda.bindings.driver`. Pointers of the GPU are addresses of arrays; a module is its PTX, which is run as it is.

It is as strict as the driver: no call before `cuInit` or without a context, no copy beyond an array, nothing twice.
After a launch that failed every call fails likewise.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from enum import IntEnum
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.kit.ptx_on_cpu import PtxProgram


class CUresult(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NOT_INITIALIZED = 3
    CUDA_ERROR_NO_DEVICE = 100
    CUDA_ERROR_INVALID_CONTEXT = 201
    CUDA_ERROR_JIT_COMPILER_NOT_FOUND = 221
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222
    CUDA_ERROR_NOT_FOUND = 500
    CUDA_ERROR_LAUNCH_TIMEOUT = 702
    CUDA_ERROR_LAUNCH_FAILED = 719
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803


_DEVICE = IntEnum(
    "CUdevice_attribute",
    {
        f"CU_DEVICE_ATTRIBUTE_{name}": number
        for name, number in {
            "MULTIPROCESSOR_COUNT": 16,
            "MAX_THREADS_PER_MULTIPROCESSOR": 39,
            "COMPUTE_CAPABILITY_MAJOR": 75,
            "COMPUTE_CAPABILITY_MINOR": 76,
        }.items()
    },
)
_FUNCTION = IntEnum("CUfunction_attribute", {"CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES": 3})
PROCESSORS, THREADS = 4, 1024
_OK = CUresult.CUDA_SUCCESS
_OF_CONTEXT = ("cuMem", "cuModule", "cuLaunch", "cuFunc", "cuCtxSync")


@dataclass
class StandInDriver:
    """memory: bytes that are free; local: of a thread in the kernel itself; fails: call -> result instead of success.
    `launches` has the threads and the whole numbers of each launch."""

    memory: int = 1 << 30
    local: int = 1000
    capability: tuple[int, int] = (8, 6)
    fails: dict[str, CUresult] = field(default_factory=dict)

    CUdevice_attribute, CUfunction_attribute, CUresult = _DEVICE, _FUNCTION, CUresult

    def __post_init__(self) -> None:
        self.ready, self.contexts, self.retained = False, 0, 0
        self.arrays: dict[int, np.ndarray] = {}
        self.modules: list[Any] = []
        self.broken: CUresult | None = None  # after a launch that failed, until the context ends
        self.launches: list[tuple[int, tuple[int, ...]]] = []

    def __getattribute__(self, name: str) -> Any:
        found = object.__getattribute__(self, name)
        if not name.startswith("cu"):
            return found

        def call(*arguments: Any) -> tuple[Any, ...]:
            if name.startswith(_OF_CONTEXT) and self.broken is not None:
                return (self.broken,)
            if name in self.fails:
                if name in ("cuLaunchKernel", "cuCtxSynchronize"):
                    self.broken = self.fails[name]
                return (self.fails[name],)
            if name != "cuInit" and not self.ready:
                return (CUresult.CUDA_ERROR_NOT_INITIALIZED,)
            if name.startswith(_OF_CONTEXT) and not self.contexts:
                return (CUresult.CUDA_ERROR_INVALID_CONTEXT,)
            result = found(*arguments)
            return result if isinstance(result, tuple) else (_OK, result) if result is not None else (_OK,)

        return call

    @property
    def clean(self) -> bool:
        """Whether everything was given back."""
        return not (self.contexts or self.retained or self.arrays or self.modules)

    # --- devices and contexts ---

    def cuInit(self, flags: int) -> None:
        assert flags == 0
        self.ready = True

    def cuDeviceGet(self, ordinal: int) -> int:
        return ordinal

    def cuDeviceGetName(self, length: int, device: int) -> bytes:
        return b"Stand-in".ljust(length, b"\0")

    def cuDeviceGetAttribute(self, which: IntEnum, device: int) -> int:
        known = {
            _DEVICE.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: PROCESSORS,
            _DEVICE.CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: THREADS,
            _DEVICE.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: self.capability[0],
            _DEVICE.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: self.capability[1],
        }
        return known[which]

    def cuDevicePrimaryCtxRetain(self, device: int) -> str:
        self.retained += 1
        return "context"

    def cuDevicePrimaryCtxRelease(self, device: int) -> None:
        self.retained -= 1
        if self.broken is not None:  # its end is the only way on
            self.arrays.clear()
            self.modules.clear()
            self.broken = None

    def cuCtxPushCurrent(self, context: str) -> None:
        assert context == "context"
        self.contexts += 1

    def cuCtxPopCurrent(self) -> str:
        self.contexts -= 1
        return "context"

    def cuCtxSynchronize(self) -> None:
        pass

    # --- modules ---

    def cuModuleLoadData(self, image: bytes) -> Any:
        assert image.endswith(b"\0")
        self.modules.append(PtxProgram(image[:-1].decode()))
        return self.modules[-1]

    def cuModuleUnload(self, module: Any) -> None:
        self.modules.remove(module)

    def cuModuleGetFunction(self, module: PtxProgram, name: bytes) -> Any:
        if name.decode() not in module.kernels:
            return (CUresult.CUDA_ERROR_NOT_FOUND, None)
        kernel = module.kernels[name.decode()]
        return SimpleNamespace(run=module.launch(name.decode()), arguments=len(kernel.parameters))

    def cuFuncGetAttribute(self, which: IntEnum, function: Any) -> int:
        assert which == _FUNCTION.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES
        return self.local

    # --- memory ---

    def cuMemGetInfo(self) -> tuple[CUresult, int, int]:
        return _OK, self._free, self.memory

    @property
    def _free(self) -> int:
        return self.memory - sum(array.nbytes for array in self.arrays.values())

    def cuMemAlloc(self, size: int) -> Any:
        if size < 1:
            return (CUresult.CUDA_ERROR_INVALID_VALUE, 0)
        if size > self._free:
            return (CUresult.CUDA_ERROR_OUT_OF_MEMORY, 0)
        array = np.full(size, 0xA5, dtype=np.uint8)  # nobody clears the memory of a GPU
        self.arrays[array.ctypes.data] = array
        return array.ctypes.data

    def cuMemFree(self, pointer: int) -> None:
        del self.arrays[pointer]

    def cuMemcpyHtoD(self, pointer: int, source: int, size: int) -> None:
        assert size <= self.arrays[pointer].nbytes
        ctypes.memmove(pointer, source, size)

    def cuMemcpyDtoH(self, target: int, pointer: int, size: int) -> None:
        assert size <= self.arrays[pointer].nbytes
        ctypes.memmove(target, pointer, size)

    # --- launches ---

    def cuLaunchKernel(self, function: Any, *given: int) -> None:
        (blocks, *grid), (threads, *block), (shared, stream, places, extra) = given[:3], given[3:6], given[6:]
        assert (grid, block, shared, stream, extra) == ([1, 1], [1, 1], 0, 0, 0) and threads <= 1024
        arguments = list((ctypes.c_uint64 * function.arguments).from_address(places))
        values = [ctypes.c_int64.from_address(place).value for place in arguments]
        assert all(value in self.arrays for value in values[:5])
        self.launches.append((blocks * threads, tuple(values[5:])))
        function.run(blocks, threads, arguments)
