"""Runs the shadows of profiles on real cycles, and compares what they would have decided."""
