"""HTTP targets: agents and webhooks, called on time, signed, and only at addresses the operator allows.

guard         checks every address before it is dialled, on every attempt connection    one session for all
calls: connections are reused, redirects and proxies are off, certificates are verified target_cache  the
parts of a call that are the same for every call of one target secrets       secret headers: encrypted in the
store, decrypted only for the call response      the part of a response that is read and kept, limited in
bytes and time outcome       what a response, or a missing one, means for the job handler       one call from
beginning to end lazy          a handler that loads its libraries at the first call echo          a small
agent for demonstrations and tests; echo_paths: how a path tells it what to do
"""
