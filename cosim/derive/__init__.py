"""What follows from a mechanism alone: its graph in words, matrices and a picture."""
