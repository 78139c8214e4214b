"""Elastic arms of several tests of this room."""

from pathlib import Path


def two_link_arm() -> str:
    """The sample rig without gravity, and with one mode of each link."""
    text = Path("rigs/elastic/two_link_arm.yaml").read_text()
    text = text.replace("mechanism:\n", "mechanism:\n  gravity: [0, 0, 0]\n", 1)
    return text.replace("{bend_y: 2, bend_z: 2, twist: 1}", "{bend_y: 1}")
