"""Routes of two older APIs, for their clients. They use the same schedules and jobs, and store nothing of
their own.

agents      /api/schedules, /api/health: cron schedules that call HTTP agents, in camelCase
jobs        /jobs, /job/executions: one-time and periodic jobs, and the running jobs of a worker
"""
