"""The session protocol: begin and end a session under the gate, brief an agent at the start,
publish the session's note. Steps of a workflow are in `app.runs`.
"""
