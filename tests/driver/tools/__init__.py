"""The tools of the driver, really run."""
