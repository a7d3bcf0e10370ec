"""The tools that a model works with: each runs in the sandbox of its session and always answers."""
