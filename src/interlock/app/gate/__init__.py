"""The gate: the decision on one tool call and the policy, trust and bypasses it rests on. The
mode of a session is changed in `app.protocol`.
"""
