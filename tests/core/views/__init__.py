"""Views, on graphs that were made up and on sessions that were driven through the tools."""
