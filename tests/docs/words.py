"""Words that the project does not use, and the places where they occur.

`python -m tests.docs.words [FOLDER OR FILE …]` prints every occurrence in names, strings and pages, by file.
docs/explanation/words.md has the terms that are used instead.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import yaml

ROOT = Path(__file__).parents[2]
CODE = ("cosim", "drivers", "controllers")
PAGES = ("docs", "README.md", "CONTRIBUTING.md")

_WORDS = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
PROSE: dict[str, str] = _WORDS["prose"]  # pattern -> the term that is used
NAMES: dict[str, str] = _WORDS["names"]  # word of an identifier -> the term that is used
WHOLE = set(_WORDS["whole"])  # words of NAMES that only count as a whole identifier
EXCEPTIONS = tuple(map(tuple, _WORDS["exceptions"]))  # (path, pattern of the occurrence in its context, reason)


class Found(NamedTuple):
    path: str
    line: int
    kind: str
    text: str
    instead: str


def words_of(name: str) -> list[str]:
    """`RightsTaken_byName` -> rights, taken, by, name."""
    return [word.lower() for part in name.split("_") for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", part)]


def public_names(nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    """Classes, functions, arguments, fields and module-level values without a leading underscore."""
    for node in nodes:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.name
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not node.name.startswith("_"):
            for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
                yield arg.lineno, arg.arg
        body = node.body if isinstance(node, (ast.ClassDef, ast.Module)) else []
        for inner in body:
            if isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
                yield inner.lineno, inner.target.id
            elif isinstance(inner, ast.Assign):
                yield from ((inner.lineno, target.id) for target in inner.targets if isinstance(target, ast.Name))


@cache
def matches(text: str) -> list[tuple[re.Match[str], str]]:
    """Once for a string that stands in many places."""
    return [(match, instead) for pattern, instead in PROSE.items() for match in re.finditer(pattern, text)]


def in_prose(path: str, line: int, kind: str, text: str) -> Iterator[Found]:
    for match, instead in matches(text):
        around = " ".join(text[max(match.start() - 45, 0) : match.end() + 30].split())
        yield Found(path, line + text.count("\n", 0, match.start()), kind, f"{match[0]!r} in …{around}…", instead)


@cache
def in_file(file: Path) -> tuple[Found, ...]:
    """Of a file of Python or a page; none of others."""
    search = {".py": in_code, ".md": in_page}.get(file.suffix)
    return () if search is None else tuple(search(file))


def in_code(file: Path) -> Iterator[Found]:
    path = str(file.relative_to(ROOT))
    nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    named = [(1, file.stem), *public_names(nodes)]
    for line, name in named:
        for word in words_of(name):
            if word in NAMES and not name.startswith("_") and (word not in WHOLE or name.lower() == word):
                yield Found(path, line, "name", name, NAMES[word])
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from in_prose(path, node.lineno, "string", node.value)


def in_page(file: Path) -> Iterator[Found]:
    yield from in_prose(str(file.relative_to(ROOT)), 1, "page", file.read_text(encoding="utf-8"))


def excepted(found: Found, exceptions: tuple[tuple[str, str, str], ...] = EXCEPTIONS) -> bool:
    return any(re.search(path, found.path) and re.search(text, found.text) for path, text, _ in exceptions)


def all_found(paths: tuple[str, ...]) -> list[Found]:
    """Every occurrence in these files and folders, in order of path and line."""
    found: set[Found] = set()
    for name in paths:
        place = ROOT / name
        for file in [place] if place.is_file() else sorted(place.rglob("*")):
            if any(part.is_symlink() for part in file.parents):
                continue  # cosim/plugins/drivers and cosim/plugins/controllers are checked as drivers/ and controllers/
            found.update(in_file(file))
    return sorted(found)


def offenders(paths: tuple[str, ...] = (*CODE, *PAGES)) -> list[Found]:
    """Every occurrence in these files and folders that no exception covers."""
    return [one for one in all_found(paths) if not excepted(one)]


if __name__ == "__main__":
    listed = offenders(tuple(sys.argv[1:]) or (*CODE, *PAGES))
    for one in listed:
        print(f"{one.path}:{one.line}: {one.kind} {one.text}; use: {one.instead}")
    print(f"{len(listed)} in {len({one.path for one in listed})} files")
