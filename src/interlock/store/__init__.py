"""The store: the event log, its indexes, blobs and the keyring, and what belongs to the store on
this machine. It does, and never decides.
"""
