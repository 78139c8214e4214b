"""Messages of every driver family, as they are sent and received in each cycle, with their encoders and decoders."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec

from cosim.core.plugin_loading import DRIVER

Codec = tuple[str, Callable[[], object], Callable[[], object]]  # name, encode, decode


def samples(n: int) -> Iterator[Codec]:
    """`codec_cases` of the module `bench` of every family that has one; n: drives on a connection."""
    for family in pkgutil.iter_modules(import_module(DRIVER.package).__path__, f"{DRIVER.package}."):
        if family.ispkg and find_spec(f"{family.name}.bench"):
            yield from import_module(f"{family.name}.bench").codec_cases(n)
