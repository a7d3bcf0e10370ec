"""The files of a project: workflows now, git and notes as they come. It does, and never decides."""
