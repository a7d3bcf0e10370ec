"""Hosts: install Interlock in an agent client, take it out, prove that it works. What a client is
like is said in `agents.hosts`.
"""
