"""The `sluicegate` command: every subcommand calls a room."""
