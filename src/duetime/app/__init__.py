"""The app: registration, the async API, and the nodes that run it. Tasks -> Client (submits, reads) -> App (plans and works, too)."""

from duetime.app.app import App

__all__ = ["App"]
