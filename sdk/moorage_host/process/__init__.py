"""What every process has for its operation: logs, metrics, the admin server, signals, memory."""
