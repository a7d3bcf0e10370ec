"""Notes as use cases have them."""
