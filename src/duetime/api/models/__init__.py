"""The bodies and queries of requests: strict, closed, and the source of the OpenAPI document. Answers are
views of duetime.model.views."""
