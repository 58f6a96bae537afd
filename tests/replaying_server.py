"""A local AI Horde that replays a recorded folder over HTTP: right paths and headers, switched while it runs.

In a test::

    with ReplayingServer(folder) as server:
        HordeClient(server.url)
        server.fail("throttled", on="/api/v2/status/modes")

By hand: ``python -m tests.replaying_server --folder data/recorded/snapshot --port 8099``; then ``curl -X POST
'http://127.0.0.1:8099/_replay?fail=status'`` makes it fail, ``?heal=1`` ends that, ``?folder=…`` replays another folder.
"""

import argparse
import contextlib
import json
import socket
import sys
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from horde_policy.sources.parts import PARTS

Kind = Literal["status", "throttled", "throttled_rc", "garbage", "cut", "html", "hang", "drop", "redirect", "huge", "drip"]

MODELS_PATH = "/api/v2/status/models"
HTML_404 = b"<!doctype html>\n<html lang=en>\n<title>404 Not Found</title>\n<h1>Not Found</h1>\n"
LEFT_OUT = {"content-length", "date", "server", "connection", "transfer-encoding", "content-encoding"}
JSON_TYPE = "application/json; charset=utf-8"


@dataclass(frozen=True)
class Reply:
    """One answer to send."""

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = (("Content-Type", JSON_TYPE),)


@dataclass(frozen=True)
class Failure:
    """How an endpoint fails: its kind, and the figures that some kinds carry."""

    kind: Kind
    status: int = 500
    retry_after: str | None = "59"
    location: str = "http://elsewhere.invalid/"
    times: int | None = None


@dataclass(frozen=True)
class Asked:
    """One request as it came in."""

    method: str
    raw_path: str
    query: tuple[tuple[str, str], ...]
    headers: dict[str, str]
    body: bytes = b""


def as_json(status: int, value: object, *more: tuple[str, str]) -> Reply:
    return Reply(status, json.dumps(value).encode(), (("Content-Type", JSON_TYPE), *more))


def recorded_reply(path: Path) -> tuple[tuple[str, str, tuple[tuple[str, str], ...]] | None, Reply] | None:
    """Return the key (method, raw path, query) and the reply of a recorded file; null for what is no answer."""
    value = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(value, dict) or "response" not in value:
        specs = [spec for spec in PARTS.values() if spec.file == path.name]
        return (("GET", f"/api{specs[0].path}", specs[0].query), as_json(200, value)) if specs else None
    request, response = value.get("request", {}), value["response"]
    headers = tuple((name, text) for name, text in response.get("headers", {}).items() if name.lower() not in LEFT_OUT)
    is_text = response.get("body") is None and "body_text" in response
    body = response["body_text"] if is_text else json.dumps(response.get("body"), ensure_ascii=False)
    query = tuple(sorted((str(name), str(text)) for name, text in request.get("query", {}).items()))
    reply = Reply(response.get("status", 200), body.encode(), headers or (("Content-Type", JSON_TYPE),))
    return (request.get("method", "GET"), request["path"], query) if "path" in request else None, reply


class Recording:
    """What a folder answers."""

    def __init__(self, folder: Path, single_encoding: int) -> None:
        self.replies: dict[tuple[str, str, tuple[tuple[str, str], ...]], Reply] = {}
        self.single_encoding = single_encoding
        for path in sorted(folder.glob("*.json")):
            with contextlib.suppress(json.JSONDecodeError):
                read = recorded_reply(path)
                if read is not None and read[0] is not None:
                    self.replies[read[0]] = read[1]

    def reply(self, asked: Asked) -> Reply:
        path = asked.raw_path
        found = self.replies.get((asked.method, path, asked.query))
        one_model = path.startswith(MODELS_PATH + "/")
        if one_model and (self.single_encoding == 1 or found is None):
            return self.one_model(path.removeprefix(MODELS_PATH + "/"))
        return found or Reply(404, HTML_404, (("Content-Type", "text/html; charset=utf-8"),))

    def one_model(self, encoded: str) -> Reply:
        """Answer for one model as the server does: a slash left after the first decoding is another address."""
        name = unquote(encoded)
        if self.single_encoding == 2:
            if "/" in name:
                return Reply(404, HTML_404, (("Content-Type", "text/html; charset=utf-8"),))
            name = unquote(name)
        listed = self.replies.get(("GET", MODELS_PATH, (("type", "text"),)))
        models = json.loads(listed.body) if listed is not None else []
        return as_json(200, [model for model in models if model["name"] == name])


class Listening(ThreadingHTTPServer):
    """Listens; a client that was killed is no news."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class ReplayingServer:
    """Serves a recorded folder on a free loopback port, from its own threads.

    ``counts`` has the requests per path, ``asked`` every request; ``folder`` can be set at any time; ``fail`` and ``heal``
    switch failures for one path or all; ``answer_with`` fixes one path's answer to a recorded file; ``extra_headers`` are
    sent with good answers, ``date`` with all. ``single_encoding`` says how often a name is encoded that the one-model endpoint
    understands.
    """

    def __init__(self, folder: Path | str, *, port: int = 0, single_encoding: int = 2) -> None:
        self._single_encoding = single_encoding
        self._lock = threading.Lock()
        self._failures: dict[str | None, Failure] = {}
        self._fixed: dict[str, Reply] = {}
        self._released = threading.Event()
        self.asked: list[Asked] = []
        self.counts: Counter[str] = Counter()
        self.extra_headers: dict[str, str] = {}
        self.date: str | None = None
        self.folder = Path(folder)
        self._server = Listening(("127.0.0.1", port), type("Answerer", (Answerer,), {"replaying": self}))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """Where it is, without ``/api``."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def folder(self) -> Path:
        """The folder that is replayed; setting it reads the folder again."""
        return self._folder

    @folder.setter
    def folder(self, folder: Path | str) -> None:
        self._folder = Path(folder)
        self._recording = Recording(self._folder, self._single_encoding)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop serving; what hangs is let go."""
        self._released.set()
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def serve(self) -> None:
        """Serve in this thread until interrupted."""
        self._server.serve_forever()

    def fail(
        self,
        kind: Kind,
        *,
        on: str | None = None,
        status: int = 500,
        retry_after: str | None = "59",
        location: str = "http://elsewhere.invalid/",
        times: int | None = None,
    ) -> None:
        """Let a path (all without ``on``) fail from now on, or so many times."""
        with self._lock:
            self._failures[on] = Failure(kind, status, retry_after, location, times)

    def heal(self, on: str | None = None) -> None:
        """End the failure of a path, or all failures and fixed answers."""
        with self._lock:
            if on is None:
                self._failures.clear()
                self._fixed.clear()
            else:
                self._failures.pop(on, None)

    def release(self) -> None:
        """Drop what hangs, now and from now on."""
        self._released.set()

    def answer_with(self, path: str, file: Path) -> None:
        """Let a path answer what a file recorded, whatever is asked of it."""
        read = recorded_reply(file)
        assert read is not None, f"{file} holds no recorded answer"
        with self._lock:
            self._fixed[path] = read[1]

    def _failure(self, path: str) -> Failure | None:
        with self._lock:
            on = path if path in self._failures else None
            failure = self._failures.get(on)
            if failure is None or failure.times is None:
                return failure
            if failure.times <= 1:
                del self._failures[on]
            else:
                self._failures[on] = Failure(
                    failure.kind, failure.status, failure.retry_after, failure.location, failure.times - 1
                )
            return failure

    def _note(self, asked: Asked) -> None:
        with self._lock:
            self.asked.append(asked)
            self.counts[asked.raw_path] += 1

    def _control(self, query: Iterable[tuple[str, str]]) -> Reply:
        wanted: dict[str, Any] = dict(query)
        if "folder" in wanted:
            self.folder = Path(wanted["folder"])
        if "heal" in wanted:
            self.heal()
        if "fail" in wanted:
            self.fail(wanted["fail"], on=wanted.get("on"), status=int(wanted.get("status", 500)))
        return as_json(200, {"folder": str(self.folder), "asked": sum(self.counts.values())})


class Answerer(BaseHTTPRequestHandler):
    """Answers one connection of a replaying server."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    replaying: "ReplayingServer"

    def log_message(self, format: str, *args: object) -> None:
        """Keep the tests' output clean."""

    def do_GET(self) -> None:
        with contextlib.suppress(ConnectionError):
            self._answer("GET")

    def do_POST(self) -> None:
        with contextlib.suppress(ConnectionError):
            self._answer("POST")

    def _answer(self, method: str) -> None:
        parts = urlsplit(self.path)
        query = tuple(sorted(parse_qsl(parts.query, keep_blank_values=True)))
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if parts.path == "/_replay" and method == "POST":
            self._send(self.replaying._control(query))
            return
        asked = Asked(method, parts.path, query, {k.lower(): v for k, v in self.headers.items()}, body)
        self.replaying._note(asked)
        failure = self.replaying._failure(parts.path)
        if failure is not None:
            self._fail(failure)
            return
        reply = self.replaying._fixed.get(parts.path) or self.replaying._recording.reply(asked)
        extra = {name.lower(): (name, value) for name, value in self.replaying.extra_headers.items()}
        kept = [(name, value) for name, value in reply.headers if name.lower() not in extra]
        self._send(Reply(reply.status, reply.body, (*kept, *extra.values())))

    def _send(self, reply: Reply) -> None:
        self.send_response_only(reply.status)
        self.send_header("Date", self.replaying.date or self.date_time_string())
        for name, value in reply.headers:
            self.send_header(name, value)
        if not any(name.lower() == "content-length" for name, _ in reply.headers):
            self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body)

    def _fail(self, failure: Failure) -> None:
        after = [("Retry-After", failure.retry_after)] if failure.retry_after is not None else []
        match failure.kind:
            case "status":
                self._send(as_json(failure.status, {"message": "Internal Server Error"}))
            case "throttled":
                self._send(as_json(429, {"message": "90 per 1 minute"}, *after))
            case "throttled_rc":
                self._send(as_json(429, {"message": "Too many", "rc": "TooManyPrompts"}, *after))
            case "garbage":
                self._send(Reply(200, b'[{"name": "half'))
            case "html":
                self._send(Reply(200, b"<html>maintenance</html>", (("Content-Type", "text/html"),)))
            case "redirect":
                self._send(Reply(302, b"", (("Location", failure.location),)))
            case "huge":
                self._send(Reply(200, b"[" + b" " * 4_000_000 + b"]"))
            case "cut":
                self._send(Reply(200, b"[", (("Content-Type", JSON_TYPE), ("Content-Length", "1000"))))
                self._drop()
            case "drip":
                self._send(Reply(200, b"[", (("Content-Type", JSON_TYPE), ("Content-Length", "1000"))))
                self._drip()
            case "hang":
                self.replaying._released.wait(60)
                self._drop()
            case "drop":
                self._drop()

    def _drip(self) -> None:
        """Send a byte now and then, never an end."""
        with contextlib.suppress(ConnectionError):
            while not self.replaying._released.wait(0.02):
                self.wfile.write(b" ")
        self.close_connection = True

    def _drop(self) -> None:
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True


def main() -> None:
    reader = argparse.ArgumentParser(description="Replay a recorded folder of AI Horde answers over HTTP, on loopback.")
    reader.add_argument("--folder", type=Path, default=Path("data/recorded/snapshot"))
    reader.add_argument("--port", type=int, default=0)
    options = reader.parse_args()
    server = ReplayingServer(options.folder, port=options.port)
    print(f"replaying {options.folder} at {server.url}", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        server.serve()


if __name__ == "__main__":
    main()
