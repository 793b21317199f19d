"""Requests and responses of the HTTP API, one file for each subject."""
