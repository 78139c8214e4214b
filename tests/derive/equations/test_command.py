"""`cosim derive --equations` as a command: what it writes, and errors in one line."""

from pathlib import Path

import pytest

from tests.derive.equations.derivations import RIGS
from tests.kit.levels import full

PARALLEL_BARS = RIGS / "mechanisms" / "four_bar.yaml"


def test_a_file_of_code(command):
    code, out, err = command("derive", "rig.yaml", "swing.c", "--equations", "--to", "c")
    assert (code, err) == (0, [])
    assert out == WRITTEN
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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--equations", "--frame", "linc"], "--frame: frame 'linc' does not exist; did you mean 'link'?"),
        (["--equations", "--load", "tip"], "--load: frame 'tip' does not exist; known: base, link"),
        (["--equations", "--load", ""], "--load: frame '' does not exist; known: base, link"),
        (
            ["--equations", "--load", "base"],
            "--load: 'base' is part of the ground and does not move; name another one",
        ),
        (
            ["--equations", "--frame", "base"],
            "--frame: 'base' is part of the ground and does not move; name another one",
        ),
        (["--equations", *["--frame", "link"] * 2], "--frame: 'link' is given twice; take one out"),
        (
            ["no/swing.c", "--equations", "--to", "c"],
            "--equations: no/swing.c: there is no folder 'no'; create it or choose another",
        ),
        (
            ["swing.py", "--equations", "--to", "c"],
            "--equations: swing.py: is a file of --to python, not of c; pass that, or choose swing.c",
        ),
        (
            ["swing.c", "--equations"],
            "--equations: swing.c: is a file of --to c, not of text; pass that, or choose swing.txt",
        ),
        (
            ["swing.f90", "--equations", "--to", "c"],
            "--equations: swing.f90: the file must have the suffix .c; choose another name",
        ),
        (
            ["my-swing.m", "--equations", "--to", "matlab"],
            "--equations: my-swing.m: MATLAB knows a function by the name of its file, and this one is no identifier; "
            "choose my_swing.m",
        ),
        (
            ["end.m", "--equations", "--to", "matlab"],
            "--equations: end.m: MATLAB knows a function by the name of its file, and this one is no identifier; "
            "choose end_model.m",
        ),
        (
            ["--graph", "--symbols"],
            "--symbols: is for --equations; add it, or take --symbols out",
        ),
        (
            ["--bondgraph", "--to", "c"],
            "--to: bond graphs are printed as text or latex, not as c; choose one of them",
        ),
        (["--graph", "--equations"], "derive: pass only one of --graph and --equations"),
    ],
)
def test_bad_input(command, words, said):
    assert command.refuses("derive", "rig.yaml", *words) == [said]


def test_a_mechanism_in_which_nothing_moves(command):
    Path("still.urdf").write_text('<robot name="still"><link name="a"/></robot>')
    said = "nothing moves in this mechanism; there are no equations"
    assert command.refuses("derive", "still.urdf", "--equations") == [f"still.urdf: {said}"]
    Path("rig.yaml").write_text("name: still\nmechanism: {bodies: [{name: a, type: fixed, mass: 1 kg}]}\n")
    assert command.refuses("derive", "rig.yaml", "--equations") == [f"rig.yaml: {said}"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: r\n", ["rig.yaml:1: missing key 'mechanism'"]),
        (
            "name: r\nmechanism: {bodies: [{name: a, mass: -1 kg}]}\n",
            [
                "rig.yaml:2 mechanism.bodies[0].mass: must be more than 0, got -1; leave the mass out for a massless "
                "body"
            ],
        ),
        (
            "name: r\nmechanism: {bodies: []}\nmechnism: 3\n",
            [
                "rig.yaml:2 mechanism.bodies: the list is empty; give it a body",
                "rig.yaml:3: unknown key 'mechnism'; did you mean 'mechanism'?",
            ],
        ),
    ],
)
def test_errors_in_a_rig(command, text, said):
    Path("rig.yaml").write_text(text)
    assert command.refuses("derive", "rig.yaml", "--equations") == said


@full
def test_a_mechanism_too_large_to_read(command):
    Path("rig.yaml").write_text("name: long\nmechanism:\n  bodies:\n" + CHAIN)
    (said,) = command.refuses("derive", "rig.yaml", "--equations")
    assert said.startswith("--to: the equations of long have ")
    assert said.endswith(" operations, too many to read (4000 at most); pass --to c, python or matlab")
    assert command("derive", "rig.yaml", "long.c", "--equations", "--to", "c")[0] == 0


def test_a_mechanism_far_too_large_to_read_is_refused_before_it_is_derived(command, monkeypatch):
    monkeypatch.setattr("cosim.derive.equations.command.derived", None)
    body = "{name: b, repeat: 100, axis: [0, 1, 0], origin: {xyz: [0, 0, 0.1]}, mass: 1 kg, inertia: [1, 1, 1]}"
    Path("rig.yaml").write_text(f"name: chain\nmechanism: {{bodies: [{body}]}}\n")
    assert command.refuses("derive", "rig.yaml", "--equations") == [
        "--to: the inertia of chain alone has 5050 elements, too many to read (4000 at most); pass --to c, python or "
        "matlab"
    ]


@pytest.mark.parametrize("mode", ["--equations", "--compare", "--graph"])
def test_a_formulation_that_does_not_exist(command, mode):
    text = Path("rig.yaml").read_text().replace("mechanism:\n", "mechanism:\n  formulation: kaine\n")
    Path("rig.yaml").write_text(text)
    said = "rig.yaml:4 mechanism.formulation: there is no formulation 'kaine'; did you mean 'kane'?"
    assert command.refuses("derive", "rig.yaml", mode) == [said]


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


WRITTEN = """\
computed with       additions  multiplications  divisions  functions
pose_link                   0                0          0          2
mass_matrix                 0                0          0          0
coriolis                    0                0          0          0
gravity                     0                1          0          1
inverse_dynamics            1                2          0          1
forward_dynamics            1                2          0          1
equation of motion          0                1          0          1

wrote    equations swing.c
"""
