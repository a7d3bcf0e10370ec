"""Hooks: what agent clients ask and tell before, between and after their tools."""
