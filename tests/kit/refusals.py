"""What a call raises, in one expression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from cosim.core.errors import InputError

Error = TypeVar("Error", bound=BaseException)


def raised(error: type[Error] | tuple[type[Error], ...], call: Callable[..., Any], *given: Any, **keys: Any) -> Error:
    with pytest.raises(error) as caught:
        call(*given, **keys)
    return caught.value


def refusal(call: Callable[..., Any], *given: Any, **keys: Any) -> str:
    """The words of the error that wrong input ends with: one line for each thing that is wrong."""
    return str(raised(InputError, call, *given, **keys))
