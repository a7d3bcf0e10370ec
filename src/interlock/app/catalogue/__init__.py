"""The catalogue: workflow files that can be started, the sources they come from, new files.
Running a workflow is in `runs`.
"""
