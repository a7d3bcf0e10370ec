"""What starts unattended work from outside: what a forge sends, and the proof that it did."""
