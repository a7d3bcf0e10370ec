"""The driver: its loop, its journal, its tools."""
