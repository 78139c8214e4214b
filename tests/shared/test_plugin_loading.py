"""Finding plug-ins: in their package, as an entry point, in a file; and what is said of a bad one."""

import importlib
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from cosim.core import plugin_loading
from cosim.core.errors import SourceLocation
from cosim.core.plugin_loading import PluginKind, find, known_names
from tests.kit.refusals import refusal

GOOD = "from cosim.plugin import params\ndef load(): pass\n@params\nclass Params: pass\n"
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
    words = refusal(find, kind, name, Path(), PLACE)
    assert "\n" not in words
    return words


def test_in_the_package():
    assert found("round").__name__ == "widgets_under_test.round"


def test_a_new_file_is_found(package):
    (package / "square.py").write_text(GOOD)
    importlib.invalidate_caches()
    assert found("square").__name__ == "widgets_under_test.square"


def test_an_entry_point(monkeypatch, said):
    Path("far_widget.py").write_text(GOOD)
    entries = EntryPoints([EntryPoint("far", "far_widget", "cosim.widgets"), EntryPoint("other", "far_widget", "else")])
    monkeypatch.setattr(plugin_loading, "entry_points", lambda group: entries.select(group=group))
    assert found("far").__name__ == "far_widget"
    said(map(mistake, ("fat", "xyz")))


def test_a_file_is_read_anew_each_time():
    Path("mine.py").write_text(GOOD)
    assert not hasattr(found("mine.py"), "MARK")
    Path("mine.py").write_text(GOOD + "MARK = 1\n")
    assert found("mine.py").MARK == 1


def test_unknown(said):
    said(map(mistake, ("rond", "xyz", "a/b.py")))


def test_a_helper_in_the_package(package, said):
    """What plug-ins share has no Params; a module that has them and lacks another part is named with it."""
    (package / "half.py").write_text(GOOD.replace("def load", "def lode"))
    said(map(mistake, ("tools", "half")))


def test_a_broken_module_is_known(package, said):
    (package / "square.py").write_text("import math\n1 / 0\n")
    importlib.invalidate_caches()
    said(map(mistake, ("xyz", "square")))


def test_a_kind_without_a_package_of_its_own(said):
    Path("mine.py").write_text(GOOD)
    kind = PluginKind("widget", "", ("Params",), "cosim.widgets")
    assert find(kind, "mine.py", Path(), PLACE).__name__ == str(Path("mine.py").absolute())
    said(mistake("round", kind))


@pytest.mark.parametrize(
    "code",
    [
        "\nimport nowhere_at_all\n",
        "x = [1,\n",
        "def f():\n    raise RuntimeError('two\\nlines')\nf()\n",
        "import math\nmath.sqrt(-1)\n",
        "import json\njson.loads('')\n",
        "import sys\nsys.exit('done')\n",
        GOOD.replace("s: pass", "s: x: 'Nope'"),
        "def load(): pass\n",
        "",
        "def load(): pass\nclass Params: pass\n",
    ],
)
def test_a_file_that_is_no_plugin(code, said):
    Path("mine.py").write_text(code)
    said(mistake("mine.py"))


def test_an_entry_point_that_leads_nowhere(monkeypatch, said):
    entries = EntryPoints([EntryPoint("far", "nowhere_at_all", "cosim.widgets")])
    monkeypatch.setattr(plugin_loading, "entry_points", lambda group: entries.select(group=group))
    said(mistake("far"))


# --- every kind ---

KINDS = [kind for kind in vars(plugin_loading).values() if isinstance(kind, PluginKind)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.word)
def test_each_known_name_is_found_and_others_are_refused_alike(kind):
    assert kind.group or kind.package
    assert bool(known_names(kind)) == bool(kind.package)
    for name in known_names(kind):
        module = find(kind, name)
        assert all(hasattr(module, needed) for needed in kind.needs), name
    assert mistake("no such name", kind).startswith(f"rig.yaml:7 part.type: unknown {kind.word} 'no such name'; ")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.group], ids=lambda kind: kind.word)
def test_a_kind_of_this_program_alone_takes_no_file(kind):
    Path("mine.py").write_text(GOOD)
    assert mistake("mine.py", kind).startswith(f"rig.yaml:7 part.type: unknown {kind.word} 'mine.py'; ")


def test_nothing_else_looks_for_plugins():
    words = "iter_modules", "spec_from_file_location", "entry_points("
    package = Path(plugin_loading.__file__).parents[1]
    found = {path.relative_to(package) for path in package.rglob("*.py") if any(w in path.read_text() for w in words)}
    assert found == {Path("core/plugin_loading.py")}
