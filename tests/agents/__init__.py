"""The agent clients."""
