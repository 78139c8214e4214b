"""Where things stand in the repository: rooms, their purpose, their tests, and names that mean one thing."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FLAT = {"__init__", "__main__", "errors", "plugin"}  # the promised names
PLUGINS = ("controllers", "drivers")  # folders beside the package
# folders of tests that belong to no single room
ACROSS = {"bench", "browser", "conformance", "docs", "kit", "oracle", "shared", "system"}
# names that every plug-in of a kind gives to its own part
CONTRACT = {"Client", "Emulator", "JointParams", "Node", "Params"}


def rooms(root: Path) -> list[Path]:
    return sorted(path.parent for path in (root / "cosim").glob("*/__init__.py"))


def sources(root: Path) -> Iterator[Path]:
    """Every module of the product."""
    for folder in ("cosim", *PLUGINS):
        yield from sorted((root / folder).rglob("*.py"))


def flat_modules(root: Path) -> set[str]:
    return {path.stem for path in (root / "cosim").glob("*.py")} - FLAT


def rooms_without_purpose(root: Path) -> list[str]:
    """Rooms whose `__init__` has no docstring that begins with its own sentence."""
    docs = {room.name: ast.get_docstring(ast.parse((room / "__init__.py").read_text())) or "" for room in rooms(root)}
    return [name for name, doc in docs.items() if not doc.split("\n\n")[0].rstrip().endswith((".", ":"))]


def folders_without_counterpart(root: Path) -> tuple[set[str], set[str]]:
    """(rooms without a folder of tests for them or for what they hold, folders of tests without one in the product)."""
    folders = {path.parent.name for path in (root / "tests").glob("*/__init__.py")}
    held = {room.name: {room.name, *(part.name for part in room.rglob("*") if part.is_dir())} for room in rooms(root)}
    known = set().union(*held.values(), PLUGINS, ACROSS)
    return {name for name, parts in held.items() if not parts & folders}, folders - known


def ambiguous_classes(root: Path) -> dict[str, list[str]]:
    """Class name -> the modules that define it, where there are several. Names in CONTRACT may recur among plug-ins."""
    places: dict[str, list[str]] = defaultdict(list)
    for path in sources(root):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and node.name not in CONTRACT:
                places[node.name].append(path.relative_to(root).as_posix())
    return {name: found for name, found in places.items() if len(found) > 1}


def test_only_the_shared_words_lie_flat():
    assert flat_modules(ROOT) == set()


def test_every_room_states_its_purpose():
    assert rooms_without_purpose(ROOT) == []


def test_every_room_has_a_folder_of_tests_of_the_same_name():
    assert folders_without_counterpart(ROOT) == (set(), set())


def test_a_class_name_means_one_thing():
    assert ambiguous_classes(ROOT) == {}


def test_what_breaks_the_rules_is_found(tmp_path: Path):
    files = {
        "cosim/clock.py": "",
        "cosim/core/types.py": "",
        "cosim/plot/__init__.py": "",
        "cosim/execution/__init__.py": '"""Clocks."""',
        "cosim/execution/timing/__init__.py": "",
        "cosim/simulation/loop/clocks.py": "class Place: ...\nclass Params: ...",
        "drivers/b.py": "def f():\n    class Place: ...",
        "controllers/c.py": "class Params: ...\nclass Other: ...",
        **{f"tests/{name}/__init__.py": "" for name in ("kit", "timing", "clock")},
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert flat_modules(tmp_path) == {"clock"}
    assert rooms_without_purpose(tmp_path) == ["plot"]
    assert folders_without_counterpart(tmp_path) == ({"plot"}, {"clock"})
    assert ambiguous_classes(tmp_path) == {"Place": ["cosim/simulation/loop/clocks.py", "drivers/b.py"]}
