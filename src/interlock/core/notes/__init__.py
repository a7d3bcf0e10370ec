"""The domain of notes: their grammar, names, search and edits. Files and indexes are adapters."""
