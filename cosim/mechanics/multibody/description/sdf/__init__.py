"""SDF files: a strict reader of their frames, links, joints and loops."""
