"""The sections of a rig file as frozen dataclasses, one file each."""
