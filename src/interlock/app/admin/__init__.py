"""The installation itself: diagnostics, access to the server, an inventory of stored data, copies
of the store. Nothing here is about one session.
"""
