"""The active policy, and how it is replaced."""
