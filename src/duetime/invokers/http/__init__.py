"""HTTP targets: agents and webhooks, called on time, signed, and never where the operator does not want us to call.

guard       which addresses are dialled: checked when connecting, on every attempt
connection  one session for all calls: connections reused, redirects and proxies off, certificates verified
prepared    what is the same for every call of one target, made once
secrets     secret headers, encrypted in the store and opened for the call alone
answer      what is read and kept of an answer, bounded in bytes and time
outcome     what an answer, or none, means for the job
handler     one call from beginning to end
late        the same, its libraries loaded beside the work
echo        a small agent for demonstrations and tests; echo_paths: how calls tell it what to do
"""
