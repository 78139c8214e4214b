"""The scripts of the page about FMUs run as they stand."""

from __future__ import annotations

import zipfile

import pytest

from tests.docs.documents import PAGES, blocks
from tests.fmi import fmus
from tests.fmi.test_system_structure import NESTED, folder, structure  # noqa: F401

SCRIPTS = blocks(PAGES["howto/fmus.md"], "python")


@fmus.needs_gcc
@pytest.mark.parametrize("script", SCRIPTS, ids=range(len(SCRIPTS)))
def test_a_script_runs(script, folder, capsys):  # noqa: F811
    fmus.build(folder, "turntable", 2).rename("turntable.fmu")
    fmus.build(folder, "turntable", 2)
    with zipfile.ZipFile("rig.ssp", "w") as archive:
        archive.write(structure(NESTED), "SystemStructure.ssd")
        archive.write("resources/turntable2.fmu")
    exec(compile(script, "docs/howto/fmus.md", "exec"), {})
    printed = capsys.readouterr().out
    last = printed.splitlines()[-1]
    if "turntable" in script:
        assert float(last) == pytest.approx(1.5)
    else:
        assert last == "('table', 'angle') ('inner/table', 'rate') 10.0 0.0"
