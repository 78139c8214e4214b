"""The hash of the emitted code is the same in every process, and changes with the code."""

import subprocess
import sys

from tests.kit.emitted_code import emitted_code, numbered
from tests.kit.samples import FOLDER

RIG = FOLDER / "two_link.yaml"


def test_another_process_emits_the_same():
    count, code = emitted_code(RIG)
    assert count > 1
    command = [sys.executable, "-m", "tests.kit.emitted_code", str(RIG)]
    out = subprocess.run(command, check=True, capture_output=True, text=True, cwd=FOLDER.parent).stdout
    assert out == f"rigs/two_link.yaml {count} {code}\n"


def test_the_hash_depends_on_code_and_not_on_parameters():
    count, code = emitted_code(RIG)
    other = emitted_code(RIG, ["schedule.integrator=semi_implicit_euler"])
    assert other[0] == count and other[1] != code
    assert emitted_code(RIG, ["schedule.duration=1 s"]) == (count, code)


def test_symbols_are_numbered_in_order_of_appearance():
    text = "define void @{a}() {{ call void @{b}() call double @llvm.sin() call void @{a}() }}"
    first, second = (numbered(text.format(a=a, b=b)) for a, b in (("f.1", "g"), ("x", "y_2")))
    assert first == second == text.format(a="s0", b="s1")
    assert numbered("call @f @f") != numbered("call @f @g")
