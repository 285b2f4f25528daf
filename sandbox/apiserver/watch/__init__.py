"""Watches: what a client asks to follow, and which events it gets."""
