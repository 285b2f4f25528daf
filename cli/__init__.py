"""The `moorage` command: a room for each subcommand, and what several of them share."""
