"""The names that programs and plug-ins import: each is there, and a former module is refused with its new place."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cosim
import cosim.errors
import cosim.plugin
from tests.kit.command import Command


@pytest.mark.parametrize("module", [cosim, cosim.plugin, cosim.errors], ids=lambda module: module.__name__)
def test_every_promised_name_is_there(module):
    assert [name for name in module.__all__ if getattr(module, name, None) is None] == []
    homes = getattr(module, "_HOMES", {})
    assert all(getattr(importlib.import_module(home), name) is getattr(module, name) for name, home in homes.items())


ROOT = Path(__file__).parents[2]
PROMISED = {module.__name__: module.__all__ for module in (cosim, cosim.plugin, cosim.errors)}
IMPORT = re.compile(r"^ *(?:from (cosim[.\w]*) import (?:\(([^)]*)\)|([^\n#(]+))|import (cosim[.\w]*))", re.MULTILINE)
PAGES = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("rigs/**/*.py")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages_and_samples_import_promised_names_alone(page: Path):
    for module, block, line, whole in IMPORT.findall(page.read_text(encoding="utf-8")):
        names = {name.split(" as ")[0].strip() for name in (block or line).split(",") if name.strip()}
        assert names <= {*PROMISED.get(module or whole, ()), "plugin", "errors"}
        assert (module or whole) in PROMISED


def test_importing_the_package_loads_nothing_else():
    program = "import sys, cosim; print(*sorted(name for name in sys.modules if name.startswith(('cosim.', 'numpy'))))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("from cosim import ops", "ModuleNotFoundError: cosim.ops is now in cosim.plugin (ops)"),
        ("from cosim.types import params", "ModuleNotFoundError: cosim.types is now in cosim.plugin"),
        ("import cosim.actuators.ideal", "ModuleNotFoundError: cosim.actuators is now in cosim.plugins.actuators"),
    ],
)
def test_a_former_module_is_refused_at_its_line(command: Command, line: str, said: str):
    with open("rig.yaml") as file:
        text = file.read()
    with open("mine.py", "w") as file:
        file.write(f"import math\n{line}\n")
    with open("rig.yaml", "w") as file:
        file.write(text.replace("type: pid", "type: mine.py"))
    (error,) = command.refuses("check", "rig.yaml")
    assert error.endswith(f"mine.py:2: the controller cannot be imported: {said}")
