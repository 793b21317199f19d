"""Files of deploy/ and .github/: rendered, checked, and started as far as this machine can."""
