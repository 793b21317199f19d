"""The HTTP API: strict JSON in, views and problem+json out. pydantic, FastAPI and uvicorn are used only
here."""
