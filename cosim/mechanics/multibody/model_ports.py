"""The inputs and the shapes of the results of the functions of a `Model`, by which they are compiled."""

from __future__ import annotations

from collections.abc import Mapping

from cosim.core.compile import ArrayPort
from cosim.mechanics.multibody.equations import MechanismEquations
from cosim.mechanics.multibody.inertial_parameters import PER_BODY

# functions that do not depend on time
UNTIMED = {"friction_effort", "integrate", "difference", "inertia_effort", "coordinates", "chart"}


def ports_of(equations: MechanismEquations) -> Mapping[str, tuple[list[ArrayPort], list[tuple[int, ...]]]]:
    """Function -> (inputs but for the time, shapes of the results)."""
    holonomic, n = sum(equations.constraints.holonomic), equations.nv
    nq, nv, m = (equations.nq,), (n,), (len(equations.constraints.holonomic),)
    q, v, qdd, tau = ArrayPort("q", nq), ArrayPort("v", nv), ArrayPort("qdd", nv), ArrayPort("tau", nv)
    prescribed, by_inertia = ArrayPort("prescribed", nv, boolean=True), (n, PER_BODY * len(equations.tree.bodies))
    return {
        "forward_dynamics": ([q, v, tau], [nv]),
        "inverse_dynamics": ([q, v, qdd], [nv]),
        "forward_dynamics_derivatives": ([q, v, tau], [nv * 2] * 3),
        "inverse_dynamics_derivatives": ([q, v, qdd], [nv * 2] * 3),
        "link_regressor": ([q, v, qdd], [(n, PER_BODY)]),
        "hybrid_dynamics": ([q, v, qdd, tau, prescribed], [nv, nv]),
        "hybrid_dynamics_derivatives": ([q, v, qdd, tau, prescribed], [nv * 2] * 3),
        "inverse_dynamics_regressor": ([q, v, qdd], [by_inertia]),
        "forward_dynamics_regressor": ([q, v, tau], [by_inertia]),
        "reactions": ([q, v, tau], [m]),
        "reactions_derivatives": ([q, v, tau], [m + nv] * 3),
        "constraint_violation": ([q, v], [(holonomic,), m]),
        "constraint_jacobian": ([q], [m + nv]),
        "inertia_effort": ([q, qdd], [nv]),
        "friction_effort": ([v], [nv]),
        "integrate": ([q, ArrayPort("d", nv)], [nq]),
        "difference": ([ArrayPort("q0", nq), ArrayPort("q1", nq)], [nv]),
        "mass_matrix": ([q], [nv * 2]),
        "kinetic_energy": ([q, v], [()]),
        "potential_energy": ([q], [()]),
        "elastic_energy": ([q], [()]),
        "mechanical_energy": ([q, v], [()]),
        "coordinates": ([ArrayPort("chart", nv)], [nq]),
        "chart": ([q], [nv]),
        "nonlinear_effects": ([q, v], [nv]),
        "gravity_effort": ([q], [nv]),
        "center_of_mass": ([q], [(3,)]),
        "center_of_mass_jacobian": ([q], [(3, n)]),
        "centroidal_momentum": ([q, v], [(6,)]),
        "centroidal_momentum_matrix": ([q], [(6, n)]),
        "frame_pose": ([q], [(4, 4)]),
        "body_poses": ([q], [(len(equations.tree.joints), 3, 4)]),
        "frame_jacobian": ([q], [(6, n)]),
        "frame_jacobian_rate": ([q, v], [(6, n)]),
    }
