"""What delivers alerts: HTTP channels, e-mail, and the ping of an outside monitor."""
