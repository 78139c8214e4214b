"""What is named to be read is opened where it is a regular file only: a FIFO or a device would never end."""

from __future__ import annotations

import ast
import os
import re
import socket
from pathlib import Path

import pytest

from cosim.core.paths import NotAFile, check_file, irregular, open_file, read_file, unreadable

ROOT = Path(__file__).parents[2]
CHECKS = {"check_file", "open_file", "read_file"}
METHODS = {"read_text", "read_bytes", "from_xml_path"}
FUNCTIONS = {("", "load_certificate"), ("np", "load"), ("trimesh", "load"), ("zipfile", "ZipFile")}
MAY_READ = re.compile(rf"\b(open|{'|'.join([*METHODS, *(name for _, name in FUNCTIONS)])})\(")
# who opens what nobody names: the files of the program, of its caches and of the system, and what it wrote itself
OWN = {
    "benchmarks": "its own files",
    "cosim/core/compile": "cache, libraries",
    "cosim/apps/deploy": "its own files, results of compilers",
    "cosim/apps/doctor/host.py": "/proc",
    "cosim/simulation/fmi/description.py": "in memory",
    "cosim/apps/deploy/fmu_export": "in memory, results of linkers",
    "cosim/mechanics/multibody/elastic/finite_elements.py": "cache",
    "cosim/apps/new/command.py": "the rig that it replaces, a regular file",
    "cosim/rig/wiring/cached_parts.py": "cache",
    "cosim/rig/foreign_rig.py": "cache, regular files",
    "cosim/rig/reading/input_tracking.py": "what was opened before, regular files",
    "cosim/rig/rig_files.py": "what was opened before",
    "cosim/core/tables/arrays.py": "what was opened before",
    "cosim/rig/unpacked_rig.py": "modules that were imported",
    "cosim/apps/scenario/command.py": "results of its processes",
    "cosim/execution/timing/privileges.py": "/proc",
    "drivers/transport": "/proc, /sys",
}


def sources():
    for folder in ("cosim", "drivers", "controllers"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if not name.startswith(
                ("cosim/plugins/drivers/", "cosim/plugins/controllers/", "cosim/core/paths.py", *OWN)
            ):
                text = path.read_text()
                if MAY_READ.search(text):  # parsing takes long
                    yield name, ast.parse(text)


def reads(node):
    """Whether a call opens a file for reading."""
    function = node.func
    name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
    library = getattr(getattr(function, "value", None), "id", ""), name
    texts = [word.value for word in (*node.args, *(k.value for k in node.keywords)) if isinstance(word, ast.Constant)]
    modes = [text for text in texts if isinstance(text, str) and set(text) <= set("rwxab+t")]
    writes = any(set(mode) & set("wxa+") for mode in modes)
    if name == "open":
        return not writes and (bool(modes) or isinstance(function, ast.Name))
    return (isinstance(function, ast.Attribute) and name in METHODS) or (library in FUNCTIONS and not writes)


def unchecked(tree):
    """Calls that open a file for reading, in functions that do not check it; not of a file that is open already."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        calls = [call for call in ast.walk(function) if isinstance(call, ast.Call)]
        if any(isinstance(call.func, ast.Name) and call.func.id in CHECKS for call in calls):
            continue
        opened = {word.arg for word in function.args.args if getattr(word.annotation, "id", "") == "BinaryIO"}
        of_open = [call for call in calls if call.args and getattr(call.args[0], "id", "") in opened]
        yield from (call for call in calls if reads(call) and call not in of_open)


def test_nothing_else_opens_files_for_reading():
    found = [
        f"{name}:{call.lineno}: use open_file or read_file of cosim.core.paths, or check_file before"
        for name, tree in sources()
        for call in unchecked(tree)
    ]
    assert not found, "\n".join(found)


def test_who_is_exempt_exists():
    assert [name for name in OWN if not (ROOT / name).exists()] == []


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Holds one of each kind, by the words for it."""
    os.mkfifo(tmp_path / "a FIFO")
    (tmp_path / "a folder").mkdir()
    (tmp_path / "a file").write_bytes(b"text")
    (tmp_path / "a device").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(tmp_path)  # a path of a socket is short
        server.bind("a socket")
    return tmp_path


@pytest.mark.parametrize("kind", ["a FIFO", "a folder", "a device", "a socket"])
def test_what_is_no_regular_file_is_not_opened(folder, kind):
    assert irregular(folder / kind) == kind
    for read in (check_file, open_file, read_file):
        with pytest.raises(NotAFile) as caught:
            read(folder / kind)
        assert unreadable(caught.value) == caught.value.strerror == f"it is {kind}; give a file"


def test_regular_files_are_read_and_missing_ones_are_missing(folder):
    assert irregular(folder / "a file") == irregular(folder / "missing") == irregular("a\0b") == ""
    assert read_file(folder / "a file") == b"text"
    with pytest.raises(FileNotFoundError) as caught:
        read_file(folder / "missing")
    assert unreadable(caught.value) == "No such file or directory; check the path"
