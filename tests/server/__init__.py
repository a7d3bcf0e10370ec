"""The server and the console, as they are run and seen."""
