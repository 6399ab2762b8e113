"""Entry points: the commands for spark-submit, the demo, and the services it embeds."""
