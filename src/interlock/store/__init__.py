"""The store: the event log, its indexes, blobs and the keyring. It does, and never decides."""
