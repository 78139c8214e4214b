"""One step of an ordinary differential equation, by one method per function; pure, on numbers and on symbols."""
