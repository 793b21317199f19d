"""Routes of two older systems, for their clients: other words for the same schedules and jobs, nothing stored twice.

agents      /api/schedules, /api/health: cron schedules that call HTTP agents, in camelCase
jobs        /jobs, /job/executions: jobs, once or periodic, and what runs on a worker
"""
