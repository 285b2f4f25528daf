"""What `moorage up` shows about pods: rows with reasons, and a summary."""
