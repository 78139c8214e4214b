"""Parts with integrators of their own: how they are joined and stepped together, and the energy of their couplings."""

from cosim.simulation.coupling.block_part import BlockPart
from cosim.simulation.coupling.coupled_parts import CoupledParts, CoupledRun
from cosim.simulation.coupling.couplings import PowerBond, Wire
from cosim.simulation.coupling.energy import EnergyCorrection
from cosim.simulation.coupling.part import Part
from cosim.simulation.coupling.step_control import EnergyControl

__all__ = ["BlockPart", "CoupledParts", "CoupledRun", "EnergyControl", "EnergyCorrection", "Part", "PowerBond", "Wire"]
