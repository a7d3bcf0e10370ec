"""The session protocol: begin and end a session under the gate, what an agent is told at the start,
what is published. Steps of a workflow are in `runs`.
"""
