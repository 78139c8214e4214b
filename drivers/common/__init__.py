"""What families of drivers share: the bases of drivers and emulated drives, wiring and units, connections."""
