"""The assembler of CUDA, of the package that brings it."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from cosim.core.compile.ptx import LIBDEVICE, libdevice
from cosim.core.errors import CompileError


@dataclass(frozen=True)
class Assembled:
    """Of the kernels of a text: most registers of a thread, most bytes of its stack with all calls, and the bytes that
    left registers for it in all functions."""

    registers: int
    stack: int
    spilled: int


def ptxas() -> Path:
    """Skips the test where it is not installed."""
    try:
        folder = libdevice().parents[len(Path(LIBDEVICE).parts) - 1]
    except CompileError as error:
        pytest.skip(str(error))
    file = folder / "bin" / "ptxas"
    if not file.is_file():
        pytest.skip(f"ptxas of CUDA is not installed: there is no {file}")
    return file


def assemble(text: str, cpu: str, folder: Path) -> Assembled:
    """Fails with the message of the assembler if it does not accept the text."""
    source = folder / "code.ptx"
    source.write_text(text)
    command = [str(ptxas()), "-v", "-Werror", f"-arch={cpu}", str(source), "-o", str(folder / "code.cubin")]
    run = subprocess.run(command, capture_output=True, text=True)
    shown = run.stdout + run.stderr
    assert run.returncode == 0, shown
    figures = (r"Used (\d+) registers", r"(\d+) bytes cumulative stack size", r"(\d+) bytes spill stores")
    registers, stacks, spilled = ([int(each) for each in re.findall(figure, shown)] for figure in figures)
    return Assembled(max(registers), max(stacks), sum(spilled))
