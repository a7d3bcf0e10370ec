"""Several agents in one project, on real stores and with a clock that is set."""
