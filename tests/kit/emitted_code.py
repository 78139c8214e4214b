"""What machine code the sample rigs emit: a change that only renames or moves must leave every hash as it is.

    python -m tests.kit.emitted_code > before.txt     # change the code
    python -m tests.kit.emitted_code | diff before.txt -

prints one line per rig (arguments: paths of rigs; none: all samples): its path, how many modules it compiles, and a
hash of their LLVM IR. Symbols count by their order, not by their names.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from cosim import load_rig
from cosim.core.compile import jit
from cosim.core.errors import CosimError
from tests.kit.samples import FOLDER

INTRINSIC = "@llvm."


def numbered(ir: str) -> str:
    """The IR with its global symbols numbered by their first appearance; intrinsics keep their names."""
    numbers: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        name = match[0]
        return name if name.startswith(INTRINSIC) else numbers.setdefault(name, f"@s{len(numbers)}")

    return re.sub(r"@[\w.]+", number, ir)


@contextmanager
def modules_compiled() -> Iterator[list[str]]:
    """The IR of each module that is compiled, or taken from the cache, inside the context."""
    modules: list[str] = []
    compile_module = jit.Library.__init__

    def listening(self: jit.Library, ir: str, exports: list[str], imports: Mapping[str, int]) -> None:
        modules.append(numbered(ir))
        compile_module(self, ir, exports, imports)

    jit.Library.__init__ = listening
    try:
        yield modules
    finally:
        jit.Library.__init__ = compile_module


def emitted_code(rig: Path, overrides: Iterable[str] = ()) -> tuple[int, str]:
    """(number of modules, hash) of what the engine of a rig and its signals compile.

    Raises CosimError for a rig that is wrong.
    """
    with modules_compiled() as modules:
        loaded = load_rig(rig, tuple(overrides))
        loaded.engine()
        getattr(loaded.observe, "address", None)  # compiled on first use
    return len(modules), hashlib.sha256("\0".join(modules).encode()).hexdigest()[:16]


def main(arguments: list[str]) -> int:
    failed = False
    rigs = (path for path in sorted(FOLDER.rglob("*.yaml")) if path.parent.name != "scenarios")
    for path in map(Path, arguments) if arguments else rigs:
        shown = path.relative_to(FOLDER.parent) if path.is_relative_to(FOLDER.parent) else path
        try:
            count, code = emitted_code(path)
        except CosimError as error:
            failed = True
            count, code = 0, f"{type(error).__name__}: {error}"
        print(shown, count, code, flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
