"""Every formulation beside the separate-body sweeps, and formulations that do not exist or do not apply."""

from __future__ import annotations

import pytest

from cosim import InputError
from cosim.formulations import known_formulations, load_formulation


def test_a_formulation_that_does_not_exist() -> None:
    with pytest.raises(InputError, match="there is no formulation 'separate'; did you mean 'separate_bodies'"):
        load_formulation("separate", None)  # type: ignore[arg-type]


def test_every_formulation_says_what_it_is() -> None:
    for module in known_formulations().values():
        assert module.ABOUT and module.SOURCE
