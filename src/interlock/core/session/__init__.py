"""Sessions: their events, the state that the events add up to, and the decisions about their runs.
The views of a session for people are in `views`.
"""
