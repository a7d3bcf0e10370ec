"""The driver: the process that works through runs unattended, as a client of the server."""
