"""The use cases, one module each: read, decide, append. The one door for every surface."""
