"""`cosim derive --equations` as a command: what it writes, and errors in one line."""

import shlex
from pathlib import Path

import pytest

from tests.derive.equations.derivations import RIGS
from tests.kit.given import beside

GIVEN = beside(__file__)

PARALLEL_BARS = RIGS / "mechanisms" / "four_bar.yaml"


def test_a_file_of_code(command, said):
    out = command.prints("derive", "rig.yaml", "swing.c", "--equations", "--to", "c")
    said(out)
    assert "void swing_forward_dynamics(const double q[1], const double v[1], const double tau[1], double out[1])" in (
        Path("swing.c").read_text()
    )


@pytest.mark.parametrize("to", ["text", "latex", "c", "python", "matlab"])
def test_a_file_has_what_is_printed_without_one(command, to):
    file = {"text": "swing.txt", "latex": "swing.tex", "c": "swing.c", "python": "swing.py", "matlab": "swing.m"}[to]
    _, printed, _ = command("derive", "rig.yaml", "--equations", "--to", to)
    assert command("derive", "rig.yaml", file, "--equations", "--to", to)[0] == 0
    assert Path(file).read_text() == printed


def test_a_mechanism_with_loops_has_its_tree_and_its_constraints(command):
    code, out, _ = command("derive", PARALLEL_BARS, "--equations")
    assert code == 0
    assert "M(q) a + S(q, v) + G(q) = tau + H^T lambda, H a = gamma" in out
    assert "inverse_dynamics" in out


BAD = GIVEN["bad"]


@pytest.mark.parametrize("words", BAD)
def test_bad_input(command, said, words):
    said(command.refuses("derive", "rig.yaml", *shlex.split(words)))


STILL = "name: still\nmechanism: {bodies: [{name: a, type: fixed, mass: 1 kg}]}\n"
LARGE = "{name: b, repeat: 100, axis: [0, 1, 0], origin: {xyz: [0, 0, 0.1]}, mass: 1 kg, inertia: [1, 1, 1]}"
BAD_RIGS = {
    "nothing moves": STILL,
    "no mechanism": "name: r\n",
    "a negative mass": "name: r\nmechanism: {bodies: [{name: a, mass: -1 kg}]}\n",
    "two errors": "name: r\nmechanism: {bodies: []}\nmechnism: 3\n",
    "too large to read": f"name: chain\nmechanism: {{bodies: [{LARGE}]}}\n",
}


@pytest.mark.parametrize("what", BAD_RIGS)
def test_bad_rigs_are_refused_before_they_are_derived(command, said, monkeypatch, what):
    if what != "nothing moves":
        monkeypatch.setattr("cosim.apps.derive.equations.command.derived", None)
    Path("rig.yaml").write_text(BAD_RIGS[what])
    said(command.refuses("derive", "rig.yaml", "--equations"))


def test_a_robot_in_which_nothing_moves(command, said):
    Path("still.urdf").write_text('<robot name="still"><link name="a"/></robot>')
    said(command.refuses("derive", "still.urdf", "--equations"))


def test_a_mechanism_too_large_to_read(command, said):
    Path("rig.yaml").write_text("name: long\nmechanism:\n  bodies:\n" + CHAIN)
    said(command.refuses("derive", "rig.yaml", "--equations"), r"\d+(?= operations)")
    assert command("derive", "rig.yaml", "long.c", "--equations", "--to", "c")[0] == 0


@pytest.mark.parametrize("mode", ["--equations", "--compare", "--graph"])
def test_a_formulation_that_does_not_exist(command, said, mode):
    text = Path("rig.yaml").read_text().replace("mechanism:\n", "mechanism:\n  formulation: kaine\n")
    Path("rig.yaml").write_text(text)
    said(command.refuses("derive", "rig.yaml", mode))


def test_the_equations_are_those_of_every_formulation(command):
    """One that cannot treat the mechanism is no matter of the derivation."""
    _, expected, _ = command("derive", PARALLEL_BARS, "--equations")
    text = PARALLEL_BARS.read_text().replace("mechanism:\n", "mechanism:\n  formulation: augmented_bodies\n")
    Path("rig.yaml").write_text(text)
    assert command("derive", "rig.yaml", "--equations")[:2] == (0, expected)


CHAIN = "".join(
    f"    - {{name: b{k}, axis: [{k % 2}, {(k + 1) % 2}, 0.3], origin: {{xyz: [0.1, 0.02, 0.3]}}, mass: 1 kg,"
    " com: [0.1, 0.2, 0.3], inertia: [0.1, 0.1, 0.1]}\n"
    for k in range(8)
)
