"""Hooks: the commands that an agent client runs around its tools. The fast hook stands alone; the
full hook asks `app`.
"""
