"""`moorage bind`: binds one pod without a scheduler."""
