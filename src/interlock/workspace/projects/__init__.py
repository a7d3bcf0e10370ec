"""What is stored in a project: its config, workflow files, notes folder, logbooks, hand-off files.
What a use case makes of them is in `app`.
"""
