"""Errors of a section name the place where the user gave its values: an option of the command line, a line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from cosim.core.errors import InputError, InputErrors, SectionError

SAME: Mapping[str, str] = MappingProxyType({})


@contextmanager
def options_named(others: Mapping[str, str] = SAME) -> Iterator[None]:
    """A SectionError of a key becomes an InputError of the option `--key`, or of that in `others`."""

    def named(error: SectionError) -> InputError:
        key, *rest = map(str, error.keys)
        return InputError(error.what, " ".join([others.get(key, f"--{key}"), *rest]))

    with relocated(named):
        yield


@contextmanager
def relocated(locate: Callable[[SectionError], InputError]) -> Iterator[None]:
    """Each SectionError becomes what `locate` returns; other errors stay."""

    def located(error: InputError) -> InputError:
        return locate(error) if isinstance(error, SectionError) else error

    try:
        yield
    except InputErrors as many:
        raise InputErrors(map(located, many.errors)) from None
    except SectionError as error:
        raise locate(error) from None
