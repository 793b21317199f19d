"""For an application that calls servers which its users name: only addresses that the operator allows, and
answers up to a size.

GuardedClient   the calls
Answer          status, headers and body
CallFailed      there is no answer that can be used
"""

from duetime.invokers.http.outbound import Answer, CallFailed, GuardedClient

__all__ = ["Answer", "CallFailed", "GuardedClient"]
