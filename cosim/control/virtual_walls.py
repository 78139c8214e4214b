"""Virtual walls: contacts of the simulation whose forces the drives of real joints exert, and when they are stable.

A wall that is sampled gives energy. A mass with viscous friction b that meets a wall of stiffness k, of which the force
is held for a step T and is d steps old, is stable up to

    k = 2 b / (T (1 + 2 d))

while b T is small beside the mass (Colgate and Schenkel, J. Robotic Systems 14(1), 1997, b > k T/2 + B with the lag of
d more steps). Several joints with B = diag(b) that meet points of contact with the Jacobian J of all springs together
are stable while B − ½ k T (1 + 2 d) Jᵀ J is positive definite: one row J has b = 1/(J B⁻¹ Jᵀ).

What a wall has given is known from its held efforts and from the motion while they were exerted (passivity observer:
Hannaford and Ryu, IEEE Trans. Robotics and Automation 18(1), 2002); of a wall alone it is never positive.

Pure, SI.
"""

from __future__ import annotations

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric

MARGIN = 0.5  # of the limit of stability, up to which a stiffness is accepted


def work_of_held(effort: Numeric, displacement: Numeric) -> Numeric:
    """J, of efforts (n,) that were held over displacements (n,)."""
    return ops.sum(effort[k] * displacement[k] for k in range(len(displacement)))


def largest_stiffness(damping: np.ndarray, jacobian: np.ndarray, step: float, delay: float) -> float:
    """The k at the limit of stability [N/m], the same for all springs; infinite where no joint moves them.

    damping (n,): viscous, of the joints, 0 where there is none; jacobian (m, n): of the m springs; step [s]; delay: d.
    """
    felt = np.any(jacobian != 0.0, axis=0)
    if not felt.any():
        return np.inf
    b, J = damping[felt], jacobian[:, felt]
    if np.any(b <= 0.0):
        return 0.0
    largest = float(np.linalg.norm(J / np.sqrt(b), 2)) ** 2
    return 2.0 / (step * (1.0 + 2.0 * delay) * largest)
