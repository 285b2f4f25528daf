"""Runs plugins as services: what every Moorage process shares, and no plugin may import."""
