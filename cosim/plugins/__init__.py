"""Plug-ins by name: actuators, trajectories, controllers and drivers.

In a checkout the folders of controllers and drivers stand beside the package.
"""

from cosim.core.errors import PLUGINS

if (beside := str(PLUGINS[0].parent)) not in __path__:
    __path__.append(beside)
