"""Jobs as the other use cases see them: who runs them, and having somebody run them. The jobs
themselves are in `interlock.durable`, which is imported only by a process that runs them.
"""
