"""Tests of what triggers decide."""
