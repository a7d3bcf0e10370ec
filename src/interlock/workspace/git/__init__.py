"""Git: the state of a worktree, and checkouts of foreign repositories. Nothing else starts git."""
