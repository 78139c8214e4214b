"""The examples in C are built with strict warnings, and run against a recording and around a simulated motor."""

import os
import platform
import re
import shutil
import subprocess
import sys

import pytest

from cosim.apps.deploy.check import TOOLS
from cosim.control.limits import STALE
from tests.docs.documents import ROOT
from tests.kit.samples import FOLDER

NATIVE = platform.machine()
OTHER = next(target for target in ("aarch64", "riscv64") if target != NATIVE)
PAGE = ROOT / "docs" / "howto" / "embed-a-controller.md"


def run(folder, target):
    """The lines that `make` prints in a copy of the examples."""
    words = ["make", "run", f"TARGET={target}", f"COSIM={sys.executable} -m cosim"]
    programs = ["make", "cc"]
    if target != NATIVE:
        compiler, emulator, _ = TOOLS[target]
        words += [f"CC={compiler}", "LDFLAGS=-static", f"RUN={emulator}"]
        programs = ["make", compiler, emulator]
    if missing := [each for each in programs if shutil.which(each) is None]:
        pytest.skip(f"there is no {', '.join(missing)}")
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, env=os.environ | {"MAKEFLAGS": ""})
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    """(folder, what they print on this machine)."""
    rigs = tmp_path_factory.mktemp("rigs")
    shutil.copytree(FOLDER / "embedded", rigs / "embedded", ignore=shutil.ignore_patterns("build"))
    for name in ("arm_sim", "flywheel_vesc"):
        shutil.copy(FOLDER / f"{name}.yaml", rigs)
    return rigs / "embedded", run(rigs / "embedded", NATIVE)


@pytest.mark.parametrize("target", [NATIVE, OTHER])
def test_the_examples_run(examples, target):
    folder, lines = examples
    if target != NATIVE:
        (folder / "build" / target).mkdir()
        # the recording is the same for all
        shutil.copy(folder / "build" / NATIVE / "arm_sim.csv", folder / "build" / target)
        lines = run(folder, target)
    assert "compared 5001 ticks of 44 signals, largest difference 0" in lines
    assert re.fullmatch(r"2000 ticks, largest tracking error 0\.00[0-9]+ rad", lines[-1])
    emulator = [] if target == NATIVE else [TOOLS[target][1]]
    silent = subprocess.run([*emulator, folder / "build" / target / "bus", "500"], capture_output=True, text=True)
    # the last sample of tick 499 is older than 50 ms at tick 525, or 524 where its age is rounded up
    assert re.fullmatch(f"motor off at tick 52[45]: fault {STALE}, feedback is older than guard.stale\n", silent.stdout)
    assert silent.returncode == 1


def test_another_recording_is_reported(examples, tmp_path):
    folder, file = examples[0] / "build" / NATIVE, tmp_path / "arm_sim.csv"
    lines = (folder / "arm_sim.csv").read_text().splitlines()
    numbers = lines[1001].split(",")
    numbers[3] = repr(float(numbers[3]) + 1e-6)
    lines[1001] = ",".join(numbers)
    file.write_text("\n".join(lines) + "\n")
    done = subprocess.run([folder / "main", file], capture_output=True, text=True)
    assert done.returncode == 1
    assert re.fullmatch(r"compared 5001 ticks of 44 signals, largest difference (1e-06|9\.9+e-07)\n", done.stdout)
    file.write_text(file.read_text()[:9000])
    done = subprocess.run([folder / "main", file], capture_output=True, text=True)
    assert done.returncode == 2
    assert re.fullmatch(r".*: the line of tick [0-9]+ is not that of this rig\n", done.stderr)


def test_the_example_of_the_page_is_strict_c(examples, tmp_path):
    folder = examples[0] / "build" / NATIVE
    (code,) = re.findall(r"```c\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    text = f'#include "arm_sim.h"\n#include <stdio.h>\nint main(void)\n{{\n{code}return 0;\n}}\n'
    (tmp_path / "page.c").write_text(text)
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I", folder, "-o", tmp_path / "page"]
    subprocess.run(["cc", *flags, tmp_path / "page.c", folder / "arm_sim.o", "-lm"], check=True)
    printed = subprocess.run([tmp_path / "page"], capture_output=True, text=True, check=True).stdout
    assert re.fullmatch(r"-?[0-9.]+ rad\n", printed)
