"""Clients of the HTTP service, generated from its OpenAPI document."""
