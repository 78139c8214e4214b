"""What wrong input is refused with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cosim.errors import InputError


def refusal(call: Callable[..., Any], *arguments: Any, **keys: Any) -> str:
    """The words of the error that this call ends with: one line for each thing that is wrong."""
    with pytest.raises(InputError) as caught:
        call(*arguments, **keys)
    return str(caught.value)
