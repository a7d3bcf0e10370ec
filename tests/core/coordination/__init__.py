"""The decisions of coordination."""
