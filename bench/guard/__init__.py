"""What one job costs in instructions, step by step, against a committed baseline."""

JOBS = 1_000  # in each round
STEPS = ("submit", "claim", "run", "settle")
STEPS = ("submit", "claim", "run", "settle")
