"""Agents: what Interlock must know of each agent client. It does nothing by itself."""
