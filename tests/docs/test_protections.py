"""The table of protections names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEST = re.compile(r"`([\w/]+\.py)::(test_\w+)`")


def test_every_protection_names_tests_that_exist():
    page = (ROOT / "docs/explanation/safety.md").read_text()
    section = page.split("## Protections", 1)[1].split("\n## ", 1)[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 30
    for row in rows:
        named = TEST.findall(row)
        assert named, row
        for file, test in named:
            assert f"def {test}(" in (ROOT / "tests" / file).read_text(), f"{file}::{test}"
