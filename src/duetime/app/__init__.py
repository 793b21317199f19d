"""The app: start with services.py for what it can do, core.py for opening and closing, app.py for nodes."""

from duetime.app.app import App

__all__ = ["App"]
