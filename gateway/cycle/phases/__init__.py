"""The two phases of a cycle, filter and score: nodes over replicas, and their answers joined."""
