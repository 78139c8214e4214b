"""Finding plug-ins: in their package, as an entry point, in a file; and what is said of a bad one."""

import importlib
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from cosim.errors import InputError, SourceLocation
from cosim.rig.reading import plugins
from cosim.rig.reading.plugins import PluginKind, find

GOOD = "from cosim.types import params\ndef load(): pass\n@params\nclass Params: pass\n"
KIND = PluginKind("widget", "widgets_under_test", ("Params", "load"), "cosim.widgets")
PLACE = SourceLocation("rig.yaml", 7, "part.type")


@pytest.fixture(autouse=True)
def package(tmp_path, monkeypatch):
    """The package of the kind, with one plug-in and one helper, in the current folder."""
    folder = tmp_path / "widgets_under_test"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "round.py").write_text(GOOD)
    (folder / "tools.py").write_text("def load(): pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        if name.startswith("widgets_under_test") or str(tmp_path) in name or name == "far_widget":
            del sys.modules[name]


def found(name: str):
    return find(KIND, name, Path(), PLACE)


def mistake(name: str, kind: PluginKind = KIND) -> str:
    with pytest.raises(InputError) as caught:
        find(kind, name, Path(), PLACE)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_in_the_package():
    assert found("round").__name__ == "widgets_under_test.round"


def test_a_new_file_is_found(package):
    (package / "square.py").write_text(GOOD)
    importlib.invalidate_caches()
    assert found("square").__name__ == "widgets_under_test.square"


def test_an_entry_point(monkeypatch):
    Path("far_widget.py").write_text(GOOD)
    entries = EntryPoints([EntryPoint("far", "far_widget", "cosim.widgets"), EntryPoint("other", "far_widget", "else")])
    monkeypatch.setattr(plugins, "entry_points", lambda group: entries.select(group=group))
    assert found("far").__name__ == "far_widget"
    assert mistake("fat") == "rig.yaml:7 part.type: unknown widget 'fat'; did you mean 'far'?"
    assert mistake("xyz") == "rig.yaml:7 part.type: unknown widget 'xyz'; known: round, far"


def test_a_file_is_read_anew_each_time():
    Path("mine.py").write_text(GOOD)
    assert not hasattr(found("mine.py"), "MARK")
    Path("mine.py").write_text(GOOD + "MARK = 1\n")
    assert found("mine.py").MARK == 1


def test_unknown():
    assert mistake("rond") == "rig.yaml:7 part.type: unknown widget 'rond'; did you mean 'round'?"
    assert mistake("xyz") == "rig.yaml:7 part.type: unknown widget 'xyz'; known: round"
    assert mistake("a/b.py") == "rig.yaml:7 part.type: no such file 'a/b.py' beside the rig"


def test_a_helper_in_the_package(package):
    """What plug-ins share has no Params; a module that has them and lacks another part is named with it."""
    assert mistake("tools") == "rig.yaml:7 part.type: unknown widget 'tools'; known: round"
    (package / "half.py").write_text(GOOD.replace("def load", "def lode"))
    assert mistake("half") == f"rig.yaml:7 part.type: {package / 'half.py'} is no widget: it does not define load"


def test_a_broken_module_is_known(package):
    (package / "square.py").write_text("1 / 0\n")
    importlib.invalidate_caches()
    assert mistake("xyz") == "rig.yaml:7 part.type: unknown widget 'xyz'; known: round, square"


def test_a_kind_without_a_package_of_its_own():
    Path("mine.py").write_text(GOOD)
    kind = PluginKind("widget", "", ("Params",), "cosim.widgets")
    assert find(kind, "mine.py", Path(), PLACE).__name__ == str(Path("mine.py").absolute())
    assert (
        mistake("round", kind) == "rig.yaml:7 part.type: unknown widget 'round'; give the path of a file ending in .py"
    )


@pytest.mark.parametrize(
    "code, message",
    [
        ("\nimport nowhere_at_all\n", "2: {}ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("x = [1,\n", "1: {}SyntaxError: '[' was never closed"),
        ("def f():\n    raise RuntimeError('two\\nlines')\nf()\n", "2: {}RuntimeError: two lines"),
        ("import math\nmath.sqrt(-1)\n", "2: {}ValueError: math domain error"),
        ("import json\njson.loads('')\n", "2: {}JSONDecodeError: Expecting value: line 1 column 1 (char 0)"),
        ("import sys\nsys.exit('done')\n", "2: {}SystemExit: done"),
        (GOOD.replace("s: pass", "s: x: 'Nope'"), " {}NameError: name 'Nope' is not defined"),
    ],
)
def test_a_file_that_cannot_be_imported(code, message):
    Path("mine.py").write_text(code)
    assert mistake("mine.py") == f"mine.py:{message.format('the widget cannot be imported: ')}"


def test_a_module_of_the_package_that_cannot_be_imported(package):
    (package / "broken.py").write_text("import math\n1 / 0\n")
    importlib.invalidate_caches()
    what = "the widget cannot be imported: ZeroDivisionError: division by zero"
    assert mistake("broken") == f"{package / 'broken.py'}:2: {what}"


def test_an_entry_point_that_leads_nowhere(monkeypatch):
    entries = EntryPoints([EntryPoint("far", "nowhere_at_all", "cosim.widgets")])
    monkeypatch.setattr(plugins, "entry_points", lambda group: entries.select(group=group))
    what = "the widget cannot be imported: ModuleNotFoundError: No module named 'nowhere_at_all'"
    assert mistake("far") == f"entry point nowhere_at_all: {what}"


@pytest.mark.parametrize(
    "code, lack",
    [
        ("def load(): pass\n", "does not define Params"),
        ("", "does not define Params and load"),
        ("def load(): pass\nclass Params: pass\n", "has a Params that is no dataclass"),
    ],
)
def test_a_file_that_is_no_plugin(code, lack):
    Path("mine.py").write_text(code)
    assert mistake("mine.py") == f"rig.yaml:7 part.type: mine.py is no widget: it {lack}"
