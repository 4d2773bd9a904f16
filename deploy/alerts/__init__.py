"""The receiver of alerts in docker-compose.yml."""
