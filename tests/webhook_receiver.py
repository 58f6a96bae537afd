"""A local receiver of webhooks that answers as it is told: well, badly, too late, or not at all."""

import json
import socket
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Self

Manner = Literal["ok", "error", "redirect", "hang", "drop", "answer_and_drop"]


@dataclass(frozen=True)
class Received:
    """One message as it came in."""

    key: str
    body: dict[str, Any]
    manner: Manner


class WebhookReceiver:
    """Receives on a free loopback port; ``manners`` says how the next messages are answered, the last one for all after it."""

    def __init__(self, *manners: Manner) -> None:
        self.manners: list[Manner] = list(manners) or ["ok"]
        self.received: list[Received] = []
        self.arrived = threading.Condition()
        self._over = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Answerer", (_Answerer,), {"receiver": self}))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/T000/very-secret"

    @property
    def accepted(self) -> list[str]:
        """The keys of the messages that were answered well, in order."""
        return [one.key for one in self.received if one.manner in ("ok", "answer_and_drop")]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def wait_for(self, count: int, seconds: float = 20.0) -> bool:
        """Wait until so many messages have arrived."""
        with self.arrived:
            return self.arrived.wait_for(lambda: len(self.received) >= count, seconds)


class _Answerer(BaseHTTPRequestHandler):
    receiver: WebhookReceiver

    def log_message(self, format: str, *args: object) -> None:
        """Keep the tests' output clean."""

    def do_POST(self) -> None:
        receiver = self.receiver
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with receiver.arrived:
            manner = receiver.manners[0] if len(receiver.manners) == 1 else receiver.manners.pop(0)
            receiver.received.append(Received(self.headers["Idempotency-Key"], body, manner))
            receiver.arrived.notify_all()
        if manner == "hang":
            receiver._over.wait(60)
        if manner in ("hang", "drop"):
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        status = {"error": 503, "redirect": 302}.get(manner, 200)
        self.send_response(status)
        if manner == "redirect":
            self.send_header("Location", "http://elsewhere.invalid/")
        self.send_header("Content-Length", "0")
        self.end_headers()
