"""Tests of the models: over the wire of each provider, scripted, and asked again."""
