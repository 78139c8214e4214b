"""The first GPU by CUDA's driver: a kernel of a PTX text, arrays in the memory of the GPU, launches.

Nothing of CUDA is loaded before a GPU is opened. No GPU has run this so far.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np

from cosim.core.compile.ptx import INSTALL, THREADS
from cosim.core.compile.targets import PTX, targets
from cosim.core.errors import CosimError, InputError, RunError
from cosim.core.types import Array

PLACE = "device"
ON_CPU = "or use device='cpu'"
# fraction of the free memory of a GPU that arrays may take: the driver and other programs need some
MEMORY_FRACTION = 0.9

# result of a call -> what is wrong, and the fix
_SETTING = {
    "CUDA_ERROR_NO_DEVICE": f"CUDA finds no GPU; check nvidia-smi and CUDA_VISIBLE_DEVICES, {ON_CPU}",
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": f"the parts of the NVIDIA driver have different versions; restart, {ON_CPU}",
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION": f"the NVIDIA driver is older than CUDA 10; update it, {ON_CPU}",
    "CUDA_ERROR_JIT_COMPILER_NOT_FOUND": f"the NVIDIA driver lacks its PTX compiler; install all of it, {ON_CPU}",
    "CUDA_ERROR_OUT_OF_MEMORY": f"the memory of the GPU is full; end other programs that use it, {ON_CPU}",
}
_RUNNING = {
    "CUDA_ERROR_LAUNCH_TIMEOUT": f"the system ended a launch that took too long; use a GPU without a screen, {ON_CPU}",
    "CUDA_ERROR_ILLEGAL_ADDRESS": f"the code of the ticks left its memory on the GPU; {ON_CPU.removeprefix('or ')}",
}


class PtxCode(NamedTuple):
    """A text, the name of its kernel, and bytes of the arrays of a thread."""

    text: str
    kernel: str
    local: int


class CudaDriver:
    """Calls of the driver by name; a result other than success is an error for people."""

    def __init__(self) -> None:
        """Raises InputError without cuda-python, driver or GPU."""
        try:
            self.api: Any = importlib.import_module("cuda.bindings.driver")
        except ImportError:
            raise InputError(f"'cuda' needs cuda-python; run {INSTALL}", PLACE) from None
        try:
            self("cuInit", 0)
        except RuntimeError:  # of cuda-python, where the library of the driver is not found
            raise InputError(f"there is no NVIDIA driver (libcuda.so.1); install it, {ON_CPU}", PLACE) from None

    def __call__(self, name: str, *arguments: Any) -> Any:
        """The value of a call; None without one. Raises InputError for what the setting lacks, else RunError."""
        result, *values = getattr(self.api, name)(*arguments)
        if int(result) != 0:
            raise self._error(name, result)
        return values[0] if len(values) == 1 else tuple(values) or None

    def give_back(self, name: str, *arguments: Any) -> None:
        """A call that frees something. After a launch that failed, calls fail until the context is gone, which frees
        all; the launch's error is the one that counts."""
        with suppress(CosimError):
            self(name, *arguments)

    def _error(self, call: str, result: Any) -> CosimError:
        code = result.name
        if code in _SETTING:
            return InputError(_SETTING[code], PLACE)
        return RunError(
            _RUNNING.get(code, f"the NVIDIA driver reports {code} of {call}; see nvidia-smi, {ON_CPU}"), PLACE
        )


class CudaKernel:
    """A kernel on the first GPU."""

    def __init__(self, driver: CudaDriver, function: Any, free: int) -> None:
        """free: bytes for arrays."""
        self.driver, self.free, self._function = driver, free, function

    @contextmanager
    def arrays(self, sizes: Sequence[int]) -> Iterator[list[Any]]:
        """Arrays of so many bytes in the memory of the GPU."""
        with ExitStack() as made:
            pointers = []
            for size in sizes:
                pointers.append(self.driver("cuMemAlloc", max(size, 8)))  # none is empty
                made.callback(self.driver.give_back, "cuMemFree", pointers[-1])
            yield pointers

    def put(self, array: Array, pointer: Any) -> None:
        """Copy to the GPU."""
        if array.size:
            self.driver("cuMemcpyHtoD", pointer, array.ctypes.data, array.nbytes)

    def take(self, pointer: Any, array: Array) -> None:
        """Copy from the GPU, into `array`."""
        if array.size:
            self.driver("cuMemcpyDtoH", array.ctypes.data, pointer, array.nbytes)

    def launch(self, threads: int, pointers: Sequence[Any], numbers: Sequence[int]) -> None:
        """Run so many threads, and wait for them."""
        values = np.array([*map(int, pointers), *numbers], dtype=np.uint64)
        places = np.array([values.ctypes.data + 8 * k for k in range(len(values))], dtype=np.uint64)
        blocks = -(-threads // THREADS)
        self.driver("cuLaunchKernel", self._function, blocks, 1, 1, THREADS, 1, 1, 0, 0, places.ctypes.data, 0)
        self.driver("cuCtxSynchronize")


@contextmanager
def cuda_kernel(code: Callable[[], PtxCode]) -> Iterator[CudaKernel]:
    """A kernel on the first GPU; code: makes its text where there is a GPU for it. Raises InputError without one that
    can run it."""
    driver = CudaDriver()
    device = driver("cuDeviceGet", 0)
    _check_age(driver, device)
    with ExitStack() as opened:
        context = driver("cuDevicePrimaryCtxRetain", device)
        opened.callback(driver.give_back, "cuDevicePrimaryCtxRelease", device)
        driver("cuCtxPushCurrent", context)  # others in this process may have one of their own
        opened.callback(driver.give_back, "cuCtxPopCurrent")
        made = code()
        module = driver("cuModuleLoadData", made.text.encode() + b"\0")
        opened.callback(driver.give_back, "cuModuleUnload", module)
        function = driver("cuModuleGetFunction", module, made.kernel.encode())
        free, _ = driver("cuMemGetInfo")
        yield CudaKernel(
            driver, function, int(MEMORY_FRACTION * free) - _local_memory(driver, device, function, made.local)
        )


def _attribute(driver: CudaDriver, device: Any, name: str) -> int:
    which = getattr(driver.api.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
    return driver("cuDeviceGetAttribute", which, device)


def _check_age(driver: CudaDriver, device: Any) -> None:
    capability = tuple(_attribute(driver, device, f"COMPUTE_CAPABILITY_{part}") for part in ("MAJOR", "MINOR"))
    cpu = targets()[PTX].cpu.removeprefix("sm_")
    if capability < (oldest := (int(cpu[:-1]), int(cpu[-1]))):
        name = driver("cuDeviceGetName", 100, device).split(b"\0")[0].decode()
        has, needed = (f"{major}.{minor}" for major, minor in (capability, oldest))
        raise InputError(f"'{name}' has the compute capability {has}, and {needed} is needed; use device='cpu'", PLACE)


def _local_memory(driver: CudaDriver, device: Any, function: Any, arrays: int) -> int:
    """Bytes that the driver takes for the memory of all threads that the GPU can run at the same time; arrays: of a
    thread, with the functions that the kernel calls."""
    which = driver.api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES
    processors, threads = (
        _attribute(driver, device, each) for each in ("MULTIPROCESSOR_COUNT", "MAX_THREADS_PER_MULTIPROCESSOR")
    )
    return max(arrays, driver("cuFuncGetAttribute", which, function)) * processors * threads
