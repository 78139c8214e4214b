"""Parts with integrators of their own: how they are joined and stepped together, and the energy of their couplings."""

from cosim.coupling.block_part import BlockPart
from cosim.coupling.correction import EnergyCorrection
from cosim.coupling.coupled_parts import CoupledParts, CoupledRun
from cosim.coupling.couplings import PowerBond, Wire
from cosim.coupling.part import Part
from cosim.coupling.step_control import EnergyControl

__all__ = ["BlockPart", "CoupledParts", "CoupledRun", "EnergyControl", "EnergyCorrection", "Part", "PowerBond", "Wire"]
