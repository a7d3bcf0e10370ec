"""Views: what people look at, folded from events. A view decides nothing and is never stored."""
