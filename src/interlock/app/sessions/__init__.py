"""Sessions as they are recorded: find one, read its events and nodes, carry it elsewhere. Nothing
here moves a run on or changes a mode.
"""
