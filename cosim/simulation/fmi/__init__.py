"""FMUs of other tools as parts of a co-simulation (FMI 2.0 and 3.0), and the systems of SSP that connect them."""

from cosim.simulation.fmi.fmu_system import FmuSystem, SystemPart, SystemWire
from cosim.simulation.fmi.part import FmuPart
from cosim.simulation.fmi.system_structure import read_system
from cosim.simulation.fmi.variables import InUnitOfFmu

__all__ = ["FmuPart", "FmuSystem", "InUnitOfFmu", "SystemPart", "SystemWire", "read_system"]
