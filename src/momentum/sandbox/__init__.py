"""A local LinkedIn: real HTTP in its own process, faithful to the API that Momentum uses, with scripted
faults. For tests and for the demo.

`python -m momentum.sandbox --port 8090 --data FOLDER`
"""
