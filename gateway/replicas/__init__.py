"""The replicas of filter and scorer: one session each, kept in step with the cluster state."""
