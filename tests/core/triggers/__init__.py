"""Tests of what starts unattended work, values in and values out."""
