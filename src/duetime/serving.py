"""For an application with an HTTP service of its own: what guards Duetime's service against strangers.

guarded                 serves an ASGI app, with limits for connections and for unfinished requests
ConnectionLimits        the limits; HAS_KEY in the state of a request: a known caller gives way last
require_local_request   refuses other machines, other sites and proxies, where no key is needed
WrongKeys               limits the rate of wrong keys from one address
OpenCounts              limits what one caller may hold open, such as event streams
Refused                 what all of them raise: status, code, detail and headers of the answer
"""

from duetime.api.caller import HAS_KEY
from duetime.api.local_mode import require_local_request
from duetime.api.problems import ApiProblem as Refused
from duetime.api.protocol import ConnectionLimits
from duetime.api.rate_limit import OpenCounts, WrongKeys
from duetime.api.server import address_of, guarded, listen

__all__ = [
    "HAS_KEY",
    "ConnectionLimits",
    "OpenCounts",
    "Refused",
    "WrongKeys",
    "address_of",
    "guarded",
    "listen",
    "require_local_request",
]
