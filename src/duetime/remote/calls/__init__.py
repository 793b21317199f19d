"""What can be asked of the service, one subject per file. Each function is a talk: pure, carried out by
either client."""
