"""Running: claimed jobs start on time, and their outcomes are settled."""
