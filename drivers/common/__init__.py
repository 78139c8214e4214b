"""What families of drivers share: joints' wiring and units, effort slots, motors as an emulator sees them."""
