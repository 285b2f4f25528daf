"""`moorage simulate`: schedules pods in a copy of a cluster, and compares policies there."""
