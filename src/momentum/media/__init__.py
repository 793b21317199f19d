"""Files of posts: stored in a folder or in S3, and recognised by their content."""

from momentum.media.incoming import Incoming, TooManyBytes
from momentum.media.inspection import MediaRefused
from momentum.media.store import MediaStore

__all__ = ["Incoming", "MediaRefused", "MediaStore", "TooManyBytes"]
