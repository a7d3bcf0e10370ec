"""Views for people, folded from events. A view decides nothing and is never stored."""
