"""Every picture shows a name as it is: no formula, and the numbers of characters that no font has."""

from pathlib import Path

import pytest

from tests.kit.fonts import only_fonts_of_matplotlib  # noqa: F401
from tests.output.plot_helpers import texts

RIG = """\
name: "肩 $x_1$"
mechanism:
  bodies:
    - {name: "体 $y^2$", joint: "_$a_1^ 肩", axis: [0, 1, 0], mass: 1, com: [0, 0, -0.5], inertia: [1, 1, 1]}
controllers: [{name: "$k$", type: pid, kp: 50, ki: 10, kd: 5, trajectory: {type: quintic, goal: 0.5, duration: 0.1}}]
schedule: {duration: 0.2}
"""
NUMBER = r"\u80a9"
BESIDE = ["run", "rig.yaml", "--duration", "0.1", "--record"]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("run rig.yaml --plot a.svg", [f"_$a_1^ {NUMBER}", f"{NUMBER} $x_1$"]),
        ("plot 肩.mcap $b$.mcap */position -o a.svg", [f"_$a_1^ {NUMBER}/position", NUMBER, "$b$"]),
        ("analyze rig.yaml --plot a.svg", [f"_$a_1^ {NUMBER}", f"{NUMBER} $x_1$ at 0 s", "10⁰"]),
        ("derive rig.yaml a.svg --graph", [r"\u4f53 $y^2$"]),
        ("derive rig.yaml a.svg --picture --labels", []),  # as outlines
    ],
)
def test_names_are_shown(command, words, names):
    """Warnings are errors in the tests."""
    Path("rig.yaml").write_text(RIG)
    for file in ("肩.mcap", "$b$.mcap"):
        if file in words:
            assert command(*BESIDE, file)[0] == 0
    command.prints(*words.split())
    shown = texts(Path("a.svg"))
    assert not [name for name in names if not any(name in text for text in shown)], shown
