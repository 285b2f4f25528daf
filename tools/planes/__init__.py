"""Control planes as processes, the embedded and the real one."""
