"""A run of a wired rig: its session, what it records and keeps, its result, its files and its summary."""
