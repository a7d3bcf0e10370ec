"""Hosts: how each agent client is configured, how its hooks speak, how it is told of our server.
Nothing here reads or writes its files.
"""
