"""Use cases of several agents in one project: register, reserve, claim, write, take over."""
