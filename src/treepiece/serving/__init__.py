"""The server: `Parser` behind HTTP, with batching, limits and metrics (FastAPI, uvicorn)."""
