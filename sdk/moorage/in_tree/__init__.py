"""What the filter and the score plugin of the same kube-scheduler plugin share."""
