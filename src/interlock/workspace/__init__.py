"""The files of projects and of this machine outside the store. It does, and never decides."""
