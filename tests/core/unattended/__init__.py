"""Tests of unattended work, values in and values out."""
