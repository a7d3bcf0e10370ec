"""The store: the event log, its indexes, blobs and the keyring, and the files on this machine that
belong to the store. It carries things out and never decides.
"""
