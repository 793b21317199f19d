"""What requests may hold and what answers do hold: strict, closed, and the source of the OpenAPI document."""
