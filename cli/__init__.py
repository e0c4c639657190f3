"""The `sluicegate` command: every subcommand is a file that calls a room and prints.

Words for the user go to stdout, faults to stderr as one `error:` line with the mending command; exit code 0 is good,
1 a fault or something that does not serve, 2 a wrong command line.
"""
