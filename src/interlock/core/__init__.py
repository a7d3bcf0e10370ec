"""What Interlock decides. Nothing in here does anything: time and ids arrive as arguments."""
