"""The adapters to systems of others, against processes that behave as those are documented."""
