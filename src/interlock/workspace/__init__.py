"""The files of projects and of this machine outside the store. It carries out, never decides."""
