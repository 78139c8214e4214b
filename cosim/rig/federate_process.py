"""The process of a federate that a run starts: `python -m cosim.rig.federate_process PARENT RIG NAME BROKER [OVERRIDE
…]`. It ends with the run, the process PARENT, also where that is killed."""

from __future__ import annotations

import sys
import threading

from cosim.core.errors import CosimError
from cosim.rig.federates import run_federate
from cosim.simulation.fmi.fmu_process import end_with

if __name__ == "__main__":
    threading.Thread(target=end_with, args=(int(sys.argv[1]),), daemon=True).start()
    rig, name, broker, *overrides = sys.argv[2:]
    try:
        run_federate(rig, name, broker, overrides)
    except CosimError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
