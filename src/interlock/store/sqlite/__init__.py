"""The event log on SQLite: one file, any number of processes on one machine. Nothing outside
`store` imports it.
"""
