"""What servers share: access, tokens, certificates, limits, problems; uvicorn's server, and that of plain consumers."""
