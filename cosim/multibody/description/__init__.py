"""A mechanism as it is described: read, checked, numbered, its loops cut."""
