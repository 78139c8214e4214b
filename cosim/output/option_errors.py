"""Errors of values that came from the command line name their options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from cosim.errors import InputError, InputErrors, SectionError

SAME: Mapping[str, str] = MappingProxyType({})


@contextmanager
def options_named(others: Mapping[str, str] = SAME) -> Iterator[None]:
    """A SectionError of a key becomes an InputError of the option `--key`, or of that in `others`."""

    def named(error: InputError) -> InputError:
        if not isinstance(error, SectionError):
            return error
        key, *rest = map(str, error.keys)
        return InputError(error.what, " ".join([others.get(key, f"--{key}"), *rest]))

    try:
        yield
    except InputErrors as many:
        raise InputErrors(map(named, many.errors)) from None
    except SectionError as error:
        raise named(error) from None
