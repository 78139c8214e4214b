"""Post-mortem: what happened before a recorded run stopped, in plain words."""
