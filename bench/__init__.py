"""What Interlock costs, measured beside what the machine itself costs."""
