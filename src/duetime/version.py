"""The version of this Duetime."""

VERSION = "0.1.0"
