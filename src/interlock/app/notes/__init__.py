"""What can be done with the notes of a project."""
