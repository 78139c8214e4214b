"""The figures on the page about the choice of a drive are what its commands print."""

import re
import shlex

import pytest

from tests.docs.documents import PAGES, ROOT

PAGE = PAGES["howto/size-a-drive.md"]
TASKS = re.findall(r"^```(sh|python)\n(.*?)^```\n\n```text\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)


def words_of(line: str) -> str:
    return " ".join(line.split())


def test_there_are_figures_of_every_task() -> None:
    assert len(TASKS) == PAGE.count("```text\n") == 7
    assert all(part.count("```text\n") for part in PAGE.split("\n## ")[1:])


@pytest.mark.parametrize("number", range(len(TASKS)))
def test_the_figures_of_a_task_are_printed(number: int, command, capsys, monkeypatch, tmp_path) -> None:
    language, given, expected = TASKS[number]
    (tmp_path / "rigs").symlink_to(ROOT / "rigs")
    monkeypatch.chdir(tmp_path)
    if language == "python":
        exec(compile(given, "size-a-drive.md", "exec"), {})
        printed = capsys.readouterr().out
    else:
        code, printed, err = command(*shlex.split(given)[1:])
        assert (code, err) == (0, [])
    lines = set(map(words_of, printed.splitlines()))
    assert not [line for line in expected.splitlines() if words_of(line) not in lines]
