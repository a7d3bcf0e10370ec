"""Interlock makes the work of coding agents durable, rewind-safe and safe to run side by side."""

__version__ = "0.1.0"
