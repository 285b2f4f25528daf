"""`moorage up`: all processes on this machine, the workload, and the table of where pods went."""
