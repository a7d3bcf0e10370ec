"""Hosts: install Interlock in an agent client, remove it, prove that it works. The clients
themselves are described in `agents.hosts`.
"""
