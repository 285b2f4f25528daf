"""The scheduling cycle: in-tree plugins, extenders' filters and scores, preemption."""
