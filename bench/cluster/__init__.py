"""Measures pods and binds a second on a real control plane."""
