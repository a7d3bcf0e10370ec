"""The command line: one module for each command. The work behind a command is done by `app`."""
