"""The tutorial about logs of a robot: its commands run one after the other, and print what it shows."""

import re
import shlex

import numpy as np

from tests.docs.documents import PAGES, ROOT, blocks

PAGE = PAGES["tutorial/from-a-log-to-a-rig.md"]
NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?|\b\d+ (?=%)")
CLOSE = 0.1  # relative: intervals vary more with rounding than numbers do


def words_of(line: str) -> tuple[str, list[float]]:
    """(a line without its numbers, these)."""
    return " ".join(NUMBER.sub("#", line).split()), [float(number) for number in NUMBER.findall(line)]


def test_the_tutorial_runs_from_the_first_command_to_the_last(command, monkeypatch, tmp_path) -> None:
    (tmp_path / "rigs").symlink_to(ROOT / "rigs")
    monkeypatch.chdir(tmp_path)
    lines = re.sub(r"\\\n\s*", "", "".join(blocks(PAGE, "sh"))).splitlines()
    lines = [line for line in lines if line]
    assert len(lines) == 9
    printed = [line for text in lines for line in command.prints(*shlex.split(text)[1:]).splitlines()]
    found = dict(map(words_of, printed))
    shown = [line for text in blocks(PAGE, "text") for line in text.splitlines()]
    assert len(shown) == 3
    for line in shown:
        words, numbers = words_of(line)
        assert words in found, line
        np.testing.assert_allclose(found[words], numbers, rtol=CLOSE, err_msg=line)
    combinations = [line for line in printed if re.search(r"± \S+ kg\*m\S* +\w+\(", line)]
    (others,) = (int(line.split()[1]) for line in printed if line.endswith("are 0 within their intervals"))
    assert (
        len(combinations) + others == 36
    )  # of six rotational joints, the first one vertical (Gautier and Khalil 1990)
    assert (tmp_path / "found.html").stat().st_size > 50_000
    assert (tmp_path / "found.png").exists()
