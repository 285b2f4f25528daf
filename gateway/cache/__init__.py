"""What replicas said of equal pods, so that they need not say it again."""
