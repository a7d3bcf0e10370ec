"""Jobs with the real DBOS, in this process and in others; and who never imports it."""
