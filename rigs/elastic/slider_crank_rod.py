"""A rod between two pins: two sine waves across, and two quadratic shapes along it, of its middle and its end."""

import numpy as np

from cosim.plugin import ShapeFunctions, param, params


@params
class Params:
    length: float = param(unit="m", above=0.0, default=0.3)
    side: float = param(unit="m", above=0.0, default=0.008, doc="of its square section")
    density: float = param(unit="kg/m^3", above=0.0, default=7870.0)
    youngs_modulus: float = param(unit="Pa", above=0.0, default=2e11)


def load(params):
    area, slenderness = params.side**2, params.side / params.length

    def linear(x):
        s = x / params.length
        across = [[0.0, np.sin(k * np.pi * s), 0.0] for k in (1, 2)]
        return np.array([*across, [4.0 * s * (1.0 - s), 0.0, 0.0], [s * (2.0 * s - 1.0), 0.0, 0.0]])

    stiffness = np.zeros((4, 4))
    stiffness[0, 0], stiffness[1, 1] = (np.pi**4 * k**4 / 24.0 * slenderness**2 for k in (1, 2))
    stiffness[2:, 2:] = np.array([[16.0, -8.0], [-8.0, 7.0]]) / 3.0
    modes = ("bend_1", "m"), ("bend_2", "m"), ("middle", "m"), ("end", "m")
    scale = params.youngs_modulus * area / params.length
    return ShapeFunctions(params.length, lambda x: params.density * area, modes, linear, scale * stiffness)
