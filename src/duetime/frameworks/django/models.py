"""No models: Django tells only applications with this module that `migrate` begins."""
