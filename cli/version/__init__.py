"""`moorage version`: which versions run, here and in a cluster."""
