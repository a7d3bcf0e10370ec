"""The files of a project: its config, workflow files, notes folder, logbooks, hand-off files. The
use cases that work with them are in `app`.
"""
