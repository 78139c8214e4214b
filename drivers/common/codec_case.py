"""A message of a family that the benchmark encodes and decodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class CodecCase(NamedTuple):
    name: str
    encode: Callable[[], object]
    decode: Callable[[], object]
