"""Views: what people look at, folded from events."""
