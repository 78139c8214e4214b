"""USD files: rigid bodies, joints and drives of UsdPhysics, with the optional package `usd-core`."""
