"""The installation itself: diagnostics, access to the server, what is stored where, copies of the
store. Nothing here is about one session.
"""
