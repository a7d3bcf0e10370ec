"""Tests of the forges, against a stub on loopback."""
