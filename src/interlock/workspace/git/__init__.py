"""Git: what its own files say, and checkouts of foreign repositories. Nothing else starts git."""
