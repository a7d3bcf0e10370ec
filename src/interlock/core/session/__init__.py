"""Sessions: the events of one, what they add up to, and what may happen next."""
