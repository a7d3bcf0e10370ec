"""Sessions: the events of one, what they add up to, and what may happen next in its runs. How it
is shown to people is in `views`.
"""
