"""Binds: each from its request to a known outcome, with the plugins around it; no gRPC."""
