"""The parts of the bench: what can be measured, printed and written into the page on its own."""

EDGE = "edge"
CLUSTER = "cluster"
FULL_SAMPLE = "full-sample"
GROWTH = "growth"
CLIFFS = "cliffs"
REPLICAS = "replicas"
RECORDS = "records"

PARTS = (EDGE, CLUSTER, FULL_SAMPLE, GROWTH, CLIFFS, REPLICAS, RECORDS)
"""In the order in which they are measured."""

NEED_CONTROL_PLANE = (CLUSTER, FULL_SAMPLE)
