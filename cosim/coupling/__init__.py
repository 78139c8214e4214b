"""Parts with integrators of their own: how they are joined, stepped together, and the energy that couplings lose."""
