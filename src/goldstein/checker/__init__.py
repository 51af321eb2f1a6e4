"""What must be believed, and nothing else; README.md says what and why."""
