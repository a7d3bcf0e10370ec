"""The event log in PostgreSQL. Imported only where a store is said to be there."""
