"""The server: `Parser` behind HTTP, with batches, limits and metrics (FastAPI, uvicorn)."""
