"""From a checked rig file to its parts: plant, control loops, guard, drivers, and the wired rig that holds them."""
