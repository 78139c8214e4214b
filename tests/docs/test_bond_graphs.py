"""The page on bond graphs: its rig has the equations that the page shows."""

from pathlib import Path

from tests.docs.documents import PAGES, blocks

PAGE = PAGES["howto/bond-graphs.md"]


def test_the_equations_on_the_page_are_those_of_its_rig(command):
    (rig,), (equations,) = blocks(PAGE, "yaml"), blocks(PAGE, "text")
    Path("elastic_drive.yaml").write_text(rig)
    lines = [line.split() for line in blocks(PAGE, "sh")[0].splitlines()]
    code, out, err = command(*lines[0][1:])
    assert (code, err) == (0, [])
    assert out.endswith(equations)


def test_the_commands_on_the_page_run(command):
    Path("elastic_drive.yaml").write_text(blocks(PAGE, "yaml")[0])
    for block in blocks(PAGE, "sh"):
        for line in block.splitlines():
            code, out, err = command(*line.split()[1:])
            assert (code, err) == (0, []) and out
