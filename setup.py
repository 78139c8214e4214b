"""The packages: those below `cosim`, and the plug-ins, whose folders stand beside it and install into it."""

from setuptools import find_packages, setup

PLUGINS = ("controllers", "drivers")

setup(
    packages=[
        *find_packages(include=["cosim*"]),
        *(f"cosim.plugins.{name}" for name in find_packages(include=[f"{folder}*" for folder in PLUGINS])),
    ],
    package_dir={f"cosim.plugins.{folder}": folder for folder in PLUGINS},
)
