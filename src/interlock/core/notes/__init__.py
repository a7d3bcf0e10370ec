"""The project's knowledge: what a note says, what it is called, how it is found and changed."""
