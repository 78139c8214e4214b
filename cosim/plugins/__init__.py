"""Plug-ins by name: actuators, trajectories, controllers and drivers.

In a checkout the folders of controllers and drivers stand beside the package.
"""

from cosim.core.errors import PLUGIN_ROOT

if str(PLUGIN_ROOT) not in __path__:
    __path__.append(str(PLUGIN_ROOT))
