"""Use cases of triggers: take in what happens elsewhere, and order work for it, once."""
