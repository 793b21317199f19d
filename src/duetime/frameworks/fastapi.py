"""FastAPI: Starlette's lifespan, and the App as a dependency: `async def order(duetime: Duetime)`."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends

from duetime.app import App
from duetime.frameworks.starlette import get_app, lifespan

Duetime = Annotated[App, Depends(get_app)]

__all__ = ["Duetime", "get_app", "lifespan"]
