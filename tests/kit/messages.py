"""Exact sentences of a program stand in one file per room, `tests/<room>/messages.yaml`, and are read in review.

A test that has the fixture `said` gives it what was said, and it must be what the file holds for this test:

    def test_a_mass_is_positive(command, said):
        said(command.refuses("run", "rig.yaml", "--set", "mechanism.bodies.link.mass=-1"))

After a change of words, `pytest -n 0 --update-messages [PATHS]` writes the files anew; what is wrong shows in their
difference. A folder of this test reads as `<folder>`. Elsewhere a test asserts which place and which key are named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

OPTION = "--update-messages"
TESTS = Path(__file__).parents[1]
NAME = "messages.yaml"

Words = str | BaseException | Iterable[str]
Texts = dict[str, dict[str, Any]]  # by file within the room and by test: a text, or several


class Said:
    """What one test has heard so far."""

    def __init__(self, room: Path, file: str, test: str, folder: Path, updates: bool) -> None:
        self._room, self._file, self._test, self._folder = room, file, test, folder
        self._heard: list[str] | None = [] if updates else None
        self._count = 0

    def __call__(self, words: Words, *measured: str) -> None:
        """words: lines or an exception. measured: patterns of what differs from run to run, such as times."""
        text = words if isinstance(words, str) else str(words) if isinstance(words, BaseException) else "\n".join(words)
        text = text.replace(str(self._folder), "<folder>")
        for pattern in measured:
            text = re.sub(pattern, "<measured>", text)
        self._count += 1
        if self._heard is not None:
            self._heard.append(text)
            return
        expected = self.expected
        assert self._count <= len(expected), f"{NAME} has no text {self._count} of this test, which was: {text}"
        assert text == expected[self._count - 1]

    @property
    def expected(self) -> list[str]:
        """What the file of the room holds for the test."""
        texts = _texts(self._room).get(self._file, {}).get(self._test, [])
        return [texts] if isinstance(texts, str) else texts

    def end(self) -> None:
        """All was said."""
        if self._heard is not None:
            _texts(self._room).setdefault(self._file, {})[self._test] = (
                self._heard[0] if len(self._heard) == 1 else self._heard
            )
            _write(self._room)
        else:
            assert self._count == len(self.expected), f"{NAME} holds {len(self.expected)} texts, {self._count} said"


@pytest.fixture
def said(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Said]:
    """Compares what is said with `messages.yaml` of the room."""
    within = request.node.path.relative_to(TESTS)
    room, file = TESTS / within.parts[0], "/".join(within.parts[1:])
    test = request.node.nodeid.partition("::")[2]
    failed = request.session.testsfailed
    heard = Said(room, file, test, tmp_path, bool(request.config.getoption(OPTION)))
    yield heard
    if request.session.testsfailed == failed:
        heard.end()


def begin_update(items: Iterable[pytest.Item]) -> None:
    """Forget what the files hold for the functions that will run: cases that are gone leave nothing."""
    for item in items:
        within = item.path.relative_to(TESTS)
        tests = _texts(TESTS / within.parts[0]).get("/".join(within.parts[1:]), {})
        function = item.nodeid.partition("::")[2].partition("[")[0]
        for test in [test for test in tests if test.partition("[")[0] == function]:
            del tests[test]


@cache
def _texts(room: Path) -> Texts:
    file = room / NAME
    return yaml.load(file.read_text(), yaml.CSafeLoader) if file.exists() else {}


class _Dumper(yaml.CSafeDumper):
    """Lines of a text stand one below the other."""


def _text(dumper: Any, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def _write(room: Path) -> None:
    texts = {file: tests for file, tests in _texts(room).items() if tests}
    (room / NAME).write_text(yaml.dump(texts, Dumper=_Dumper, allow_unicode=True, width=10_000))
