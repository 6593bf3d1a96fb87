"""The command line: one file for each command, parsing and dispatch only."""
