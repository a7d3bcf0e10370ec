"""The use cases, a room for each subject: read, decide, append. The one door for every surface;
nothing here speaks a protocol, prints, or knows which engine holds the store.
"""
