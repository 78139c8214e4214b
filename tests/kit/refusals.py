"""What a call raises, in one expression: `said(refusal(InputError, load_rig, file))`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

Error = TypeVar("Error", bound=BaseException)


def refusal(error: type[Error] | tuple[type[Error], ...], call: Callable[..., Any], *given: Any, **keys: Any) -> Error:
    with pytest.raises(error) as caught:
        call(*given, **keys)
    return caught.value
