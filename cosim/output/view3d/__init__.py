"""The mechanism in 3D as messages with Foxglove's schemas: transforms, shapes, joint states."""
