"""A library `libcuda.so.1` with the functions of the stand-in of CUDA's driver: `cuda.bindings` loads it as it
would load the driver of a GPU, so that its own conversions of arguments are tested too.

    LD_LIBRARY_PATH=FOLDER python -m tests.kit.cuda_library    after `build(FOLDER)`: rollouts, once on each device
"""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.kit.cuda_driver import CUresult, StandInDriver

NAME = "libcuda.so.1"
_WORDS = 11  # of the longest call
_C = """
#include <stdint.h>
#include <string.h>
typedef uintptr_t word;
typedef int (*function)({types});
function stand_in_calls[{count}];
{functions}
int cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *);
static const struct {{ const char *name; void *function; }} known[] = {{ {table} }};
int cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *status) {{
    for (unsigned k = 0; k < sizeof known / sizeof *known; ++k)
        if (!strcmp(known[k].name, name)) {{
            *found = known[k].function;
            if (status) *status = 0;
            return 0;
        }}
    *found = 0;
    if (status) *status = 1;
    return 500;
}}
int cuGetProcAddress(const char *name, void **found, int version, uint64_t flags) {{
    return cuGetProcAddress_v2(name, found, version, flags, 0);
}}
"""


def build(folder: Path) -> None:
    parameters = [f"word a{k}" for k in range(_WORDS)]
    given = ", ".join(f"a{k}" for k in range(_WORDS))
    functions = [
        f"int {name}{version}({', '.join(parameters)}) {{ return stand_in_calls[{k}]({given}); }}"
        for k, name in enumerate(_CALLS)
        for version in ("", "_v2")
    ]
    table = ", ".join(f'{{ "{name}", (void *){name} }}' for name in _CALLS)
    table += ', { "cuGetProcAddress", (void *)cuGetProcAddress_v2 }'
    types, count = ", ".join(["word"] * _WORDS), len(_CALLS)
    source = folder / "libcuda.c"
    source.write_text(_C.format(types=types, count=count, functions="\n".join(functions), table=table))
    command = ["cc", "-shared", "-fPIC", f"-Wl,-soname,{NAME}", "-o", str(folder / NAME), str(source)]
    subprocess.run(command, check=True)


class _Handles:
    """Python's objects by the addresses that stand for them."""

    def __init__(self) -> None:
        self.objects: list[Any] = [None]

    def add(self, value: Any) -> int:
        self.objects.append(value)
        return len(self.objects) - 1

    def __getitem__(self, handle: int) -> Any:
        return self.objects[handle]


def _store(address: int, value: int, kind: Any = ctypes.c_uint64) -> None:
    kind.from_address(address).value = value


def _number(word: int) -> int:
    """An int, whose upper half may be anything."""
    return ctypes.c_int32(word & 0xFFFFFFFF).value


# name in C -> what calls the function of the stand-in with its words, and returns what it found
_Call = Callable[[StandInDriver, _Handles, tuple[int, ...]], tuple[Any, ...]]


def _version(driver: StandInDriver, handles: _Handles, w: tuple[int, ...]) -> tuple[Any, ...]:
    _store(w[0], 13000, ctypes.c_int32)
    return (CUresult.CUDA_SUCCESS,)


def _name(driver: StandInDriver, handles: _Handles, w: tuple[int, ...]) -> tuple[Any, ...]:
    found = driver.cuDeviceGetName(_number(w[1]), _number(w[2]))
    if len(found) > 1:
        ctypes.memmove(w[0], found[1], _number(w[1]))
    return found


def _memory(driver: StandInDriver, handles: _Handles, w: tuple[int, ...]) -> tuple[Any, ...]:
    found = driver.cuMemGetInfo()
    for address, value in zip(w, found[1:], strict=False):
        _store(address, value)
    return found


def _launch(driver: StandInDriver, handles: _Handles, w: tuple[int, ...]) -> tuple[Any, ...]:
    return driver.cuLaunchKernel(handles[w[0]], *map(_number, w[1:8]), w[8], w[9], w[10])


def _returns(call: _Call, kind: Any = ctypes.c_uint64) -> _Call:
    """A call whose result is stored where its first word points to."""

    def run(driver: StandInDriver, handles: _Handles, w: tuple[int, ...]) -> tuple[Any, ...]:
        found = call(driver, handles, w[1:])
        if len(found) > 1:
            value = found[1]
            _store(w[0], value if isinstance(value, int) else handles.add(value), kind)
        return found

    return run


_INT = ctypes.c_int32
_CALLS: dict[str, _Call] = {
    "cuDriverGetVersion": _version,
    "cuInit": lambda d, h, w: d.cuInit(_number(w[0])),
    "cuDeviceGet": _returns(lambda d, h, w: d.cuDeviceGet(_number(w[0])), _INT),
    "cuDeviceGetName": _name,
    "cuDeviceGetAttribute": _returns(
        lambda d, h, w: d.cuDeviceGetAttribute(d.CUdevice_attribute(_number(w[0])), _number(w[1])), _INT
    ),
    "cuDevicePrimaryCtxRetain": _returns(lambda d, h, w: d.cuDevicePrimaryCtxRetain(_number(w[0]))),
    "cuDevicePrimaryCtxRelease": lambda d, h, w: d.cuDevicePrimaryCtxRelease(_number(w[0])),
    "cuCtxPushCurrent": lambda d, h, w: d.cuCtxPushCurrent(h[w[0]]),
    "cuCtxPopCurrent": _returns(lambda d, h, w: d.cuCtxPopCurrent()),
    "cuCtxSynchronize": lambda d, h, w: d.cuCtxSynchronize(),
    "cuModuleLoadData": _returns(lambda d, h, w: d.cuModuleLoadData(ctypes.string_at(w[0]) + b"\0")),
    "cuModuleUnload": lambda d, h, w: d.cuModuleUnload(h[w[0]]),
    "cuModuleGetFunction": _returns(lambda d, h, w: d.cuModuleGetFunction(h[w[0]], ctypes.string_at(w[1]))),
    "cuFuncGetAttribute": _returns(
        lambda d, h, w: d.cuFuncGetAttribute(d.CUfunction_attribute(_number(w[0])), h[w[1]]), _INT
    ),
    "cuMemGetInfo": _memory,
    "cuMemAlloc": _returns(lambda d, h, w: d.cuMemAlloc(w[0])),
    "cuMemFree": lambda d, h, w: d.cuMemFree(w[0]),
    "cuMemcpyHtoD": lambda d, h, w: d.cuMemcpyHtoD(w[0], w[1], w[2]),
    "cuMemcpyDtoH": lambda d, h, w: d.cuMemcpyDtoH(w[0], w[1], w[2]),
    "cuLaunchKernel": _launch,
}


def connect(driver: StandInDriver) -> Any:
    """Fill the library that the dynamic linker finds; what is returned must stay referenced."""
    library, handles = ctypes.CDLL(NAME), _Handles()
    kind = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_size_t] * _WORDS)

    def callback(call: _Call) -> Any:
        return kind(lambda *words: int(call(driver, handles, words)[0]))

    functions = [callback(call) for call in _CALLS.values()]
    table = (ctypes.c_void_p * len(functions)).in_dll(library, "stand_in_calls")
    for k, function in enumerate(functions):
        table[k] = ctypes.cast(function, ctypes.c_void_p).value
    return library, functions


def main() -> None:
    from cosim import Rig
    from tests.execution.test_gpu_rollouts import ARM, assert_equal, gains, speeds

    driver = StandInDriver()
    kept = connect(driver)
    rig = Rig.from_dict(ARM)
    given = {"keep": "all", "metrics": ["error_max"], "every": 3}
    assert_equal(rig.rollouts(gains(), speeds(), device="cuda", **given), rig.rollouts(gains(), speeds(), **given))
    from cuda.bindings import driver as bindings

    for name in ("CUresult", "CUdevice_attribute", "CUfunction_attribute"):
        for member in getattr(driver, name):
            assert int(getattr(getattr(bindings, name), member.name)) == int(member), member
    assert driver.clean and kept
    print(f"equal after {len(driver.launches)} launches")


if __name__ == "__main__":
    main()
