"""The command `moorage gate`: it holds groups back until they fit."""
