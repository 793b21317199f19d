"""Adapters for web frameworks. Each one opens and closes an App with the framework, and only it imports that
framework."""
