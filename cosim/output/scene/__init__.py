"""A mechanism as shapes on bodies, plain data for programs that draw it; nothing draws here."""
