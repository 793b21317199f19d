"""The moving parts: commands write, planners plan, workers run, reapers clean up. Data goes round; control
never goes back."""
