"""Tests of the use cases of triggers."""
