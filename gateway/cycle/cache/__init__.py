"""One cache before each phase of a cycle: what plugins answered for equal pods, by node."""
