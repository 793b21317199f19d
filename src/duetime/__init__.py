"""Duetime: every task, in due time."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duetime.public import *  # noqa: F403
    from duetime.public import __all__ as __all__
else:
    from duetime.version import VERSION

    __version__ = VERSION

    def __getattr__(name: str) -> object:
        """Import the library when it is used: the command line answers most calls without it."""
        if name[0].isupper() or name == "__all__":  # the name of a module is written in small letters
            import duetime.public

            value = globals()[name] = getattr(duetime.public, name)  # the next use does not come here
            return value
        raise AttributeError(f"module 'duetime' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__getattr__("__all__")})
