"""`cosim tune feedforward`: feedforward efforts of a repeated motion, learned from the errors of its runs."""

from cosim.apps.learning.iteration import Feedforward, Learned, learn, next_feedforward

__all__ = ["Feedforward", "Learned", "learn", "next_feedforward"]
