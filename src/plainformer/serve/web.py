"""The parts of the web framework that are used here, all from the extra `serve`."""

from typing import Any

from plainformer.extras import require


def _of(module: str, name: str) -> Any:
    return getattr(require(module, extra="serve"), name)


Starlette = _of("starlette.applications", "Starlette")
Route = _of("starlette.routing", "Route")
Middleware = _of("starlette.middleware", "Middleware")
CORSMiddleware = _of("starlette.middleware.cors", "CORSMiddleware")
HTTPException = _of("starlette.exceptions", "HTTPException")
JSONResponse = _of("starlette.responses", "JSONResponse")
Response = _of("starlette.responses", "Response")
StreamingResponse = _of("starlette.responses", "StreamingResponse")
