"""What every process does besides its work: logs, metrics, the admin server, signals, memory."""
