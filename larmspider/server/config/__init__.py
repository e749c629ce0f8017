"""The operator's files: crawls, schedules, secrets, settings of the server."""
