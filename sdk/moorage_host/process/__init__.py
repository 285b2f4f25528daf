"""What every process has around its work: logs, metrics, the admin server, signals."""
