"""Real agent clients, without network, against a scripted model."""
