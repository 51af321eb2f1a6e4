"""What users see of a fixed set of runs, bit for bit: recorded, and compared after a change."""
