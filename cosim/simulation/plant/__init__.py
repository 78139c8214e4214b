"""A mechanism with its drives in continuous time: its equations, modes, events, encoders and integrators."""
