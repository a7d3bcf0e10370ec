"""Models of providers, behind one port. Nothing of a provider's library leaves this package."""
