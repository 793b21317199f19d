"""The HTTP edge: strict JSON in, problem+json out. pydantic, FastAPI and uvicorn live here and nowhere else."""
