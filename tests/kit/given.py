"""Long inputs of tests, such as rigs, code of plug-ins and tables of mistakes, in a YAML file beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml


def beside(file: str) -> dict[str, Any]:
    """What `test_x.yaml` gives the tests of `test_x.py`, whose `__file__` this is: by the names of their values, or by
    the name of the one test that takes it."""
    return yaml.load(Path(file).with_suffix(".yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)
