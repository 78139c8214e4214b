"""Every formulation beside the separate-body sweeps, and formulations that do not exist or do not apply."""

import numpy as np
import pytest

from cosim import InputError
from cosim.mechanics.formulations import known_formulations, load_formulation
from cosim.mechanics.multibody import assembly
from tests.formulations.test_cartesian import model_of
from tests.kit.refusals import raised
from tests.kit.samples import FOLDER


def test_a_formulation_that_does_not_exist() -> None:
    with pytest.raises(InputError, match="unknown formulation 'separate'; did you mean 'separate_bodies'"):
        load_formulation("separate", None)  # type: ignore[arg-type]


def test_every_formulation_says_what_it_is() -> None:
    for module in known_formulations().values():
        assert module.ABOUT and module.SOURCE


MODEL = model_of(FOLDER / "mechanisms" / "four_bar.yaml")
PENDULUM = model_of(FOLDER / "mechanisms" / "double_pendulum.yaml")


def test_a_model_is_no_equations() -> None:
    with pytest.raises(InputError, match=r"expected the equations of a model, got Model; pass model\.equations$"):
        load_formulation("kane", MODEL)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", known_formulations())
def test_vectors_of_another_length_and_nan(name: str) -> None:
    formulation = load_formulation(name, PENDULUM.equations)
    for at, (vector, shape) in enumerate(((np.zeros(1), "(1,)"), (np.zeros(3), "(3,)"), (0.0, "()"))):
        given = [vector if k == at else np.zeros(2) for k in range(3)]
        what, of = ("q", "v", "tau")[at], ("nq", "nv", "nv")[at]
        message = f"{what}: has the shape {shape}; give (2,), see Model.{of}"
        assert str(raised(InputError, formulation.forward_dynamics, *given)) == message
        found = formulation.forward_dynamics(*(np.full(2, np.nan if k == at else 0.3) for k in range(3)))
        assert np.isnan(np.asarray(found, dtype=float)).all()


def test_nan_gives_nan_beside_loops() -> None:
    redundant = assembly.find_redundant(MODEL, np.array([1.0, -0.5, 1.5]), np.zeros(3, dtype=bool))
    for name in ("cartesian", "dependent_coordinates", "gauss", "kane", "lagrange"):
        state = [np.full(3, value) for value in (np.nan, 0.3, 0.0)]
        found = load_formulation(name, MODEL.without(redundant).equations).forward_dynamics(*state)
        assert np.isnan(np.asarray(found, dtype=float)).any()
