"""Object code is linked wherever there is room in the address space."""

import subprocess
import sys

import pytest

# What reserves address space, as runtimes of WebAssembly do: all that is free near the libraries, but for one page
CROWDED = """
import ctypes
from cosim.core.compile.jit import linked
from cosim.core.compile.object_code import object_code

C = ctypes.CDLL(None)
C.mmap.restype, C.munmap.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_size_t)
C.mmap.argtypes = ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long
PRIVATE, ANONYMOUS, NORESERVE, PAGE, SIZE = 0x02, 0x20, 0x4000, 4096, 8 << 30

def reserve(size):
    return C.mmap(None, size, 0, PRIVATE | ANONYMOUS | NORESERVE, -1, 0)

code = object_code(\"\"\"
define void @f(ptr %x) {
  %a = load double, ptr %x
  %b = fmul double %a, 0x400921FB54442D18
  %c = call double @cos(double %b)
  store double %c, ptr %x
  ret void
}
declare double @cos(double)
\"\"\")
linked([code], ["f"])
lowest = reserve(SIZE)
size = SIZE
while size > PAGE:
    size //= 2
    while (at := reserve(size)) > lowest:
        pass
    C.munmap(at, size)
C.munmap(lowest + SIZE - PAGE, PAGE)
found, x = linked([code], ["f"]), ctypes.c_double(1.0)
ctypes.CFUNCTYPE(None, ctypes.c_void_p)(found["f"])(ctypes.addressof(x))
print(x.value)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="numbers of mmap of Linux")
def test_parts_of_an_object_are_near_each_other_in_a_crowded_address_space():
    done = subprocess.run([sys.executable, "-c", CROWDED], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "-1.0\n", "")
