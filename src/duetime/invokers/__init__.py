"""What runs a target. One module per kind of target."""
