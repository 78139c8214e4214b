"""`cosim new`: writes a first rig for a robot file, with actuators, gains and a motion that follow from its model."""
