"""What servers share: access, certificates, limits and problems; uvicorn's server, and that of plain consumers."""
