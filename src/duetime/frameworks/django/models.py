"""No models. Django sends the signal of `migrate` only to applications with this module."""
