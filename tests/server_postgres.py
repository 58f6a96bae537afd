"""A real PostgreSQL for tests: its own cluster in a temporary folder, on a free loopback port, gone when the tests end.

Use it by importing the fixtures into a test module::

    from tests.server_postgres import postgres_server, postgres_url  # noqa: F401

``postgres_url`` is a fresh schema for each test, which the URL's ``options`` make the default one. The system's own
instance is never touched. As root the server runs as the user ``postgres``, since it refuses root. The cluster does not
wait for the disk (``fsync = off``): a power cut in the middle of a test is not what these tests are about.
"""

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest

START_S = 60.0
SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "on",
    "full_page_writes": "off",
    "max_connections": "60",
    "shared_buffers": "16MB",
    "unix_socket_directories": "",
    "listen_addresses": "127.0.0.1",
    "log_min_messages": "warning",
}


def postgres_programs() -> Path | None:
    """The folder with initdb and postgres, the newest version first; none if PostgreSQL is not installed."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: float(p.parent.name), reverse=True)
    on_path = shutil.which("initdb")
    if on_path is not None:
        folders.append(Path(on_path).parent)
    return next((folder for folder in folders if (folder / "initdb").exists() and (folder / "postgres").exists()), None)


@dataclass
class PostgresServer:
    """A running cluster; ``url()`` makes a new schema in it."""

    programs: Path
    folder: Path
    port: int
    password: str
    user: str | None
    server: "subprocess.Popen[bytes] | None" = None
    schemas: int = field(default=0)

    def start(self) -> None:
        log = (self.folder / "log").open("ab")
        command = [str(self.programs / "postgres"), "-D", str(self.folder / "data"), "-p", str(self.port)]
        for name, value in SETTINGS.items():
            command += ["-c", f"{name}={value}"]
        self.server = subprocess.Popen(command, stdout=log, stderr=log, user=self.user, cwd=self.folder)
        log.close()
        deadline = time.monotonic() + START_S
        while True:
            try:
                psycopg.connect(self.address("postgres"), connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                if self.server.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"PostgreSQL does not start:\n{(self.folder / 'log').read_text()[-2000:]}") from None
            time.sleep(0.05)

    def stop(self) -> None:
        """End the server at once and for good; ``start`` makes it recover."""
        if self.server is not None:
            self.server.send_signal(3)  # immediate shutdown, as after a crash
            self.server.wait(timeout=30)
            self.server = None

    def address(self, database: str) -> str:
        return f"postgresql://owner:{self.password}@127.0.0.1:{self.port}/{database}"

    def url(self) -> str:
        """Make an empty schema, in a thousandth of the time that a database takes, and return the URL that lands in it."""
        self.schemas += 1
        name = f"test_{self.schemas}"
        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}".encode())
        return self.address("postgres") + f"?options=-csearch_path%3D{name}"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def new_cluster(programs: Path, folder: Path) -> PostgresServer:
    """A cluster in ``folder``, not started; the folder is handed to the user that the server runs as."""
    user = None
    if os.geteuid() == 0:
        user = "postgres"
        account = pwd.getpwnam(user)
        os.chown(folder, account.pw_uid, account.pw_gid)
    server = PostgresServer(programs, folder, _free_port(), secrets.token_hex(8), user)
    secret = folder / "secret"
    secret.write_text(server.password)
    secret.chmod(0o644)
    command = [str(programs / "initdb"), "-D", str(folder / "data"), "-U", "owner", "-E", "UTF8", "--locale=C"]
    command += ["--auth=scram-sha-256", f"--pwfile={secret}", "--no-sync"]
    subprocess.run(command, check=True, user=user, cwd=folder, stdout=subprocess.DEVNULL)
    return server


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    programs = postgres_programs()
    if programs is None:
        if os.environ.get("CI"):
            pytest.fail("PostgreSQL is not installed, and CI must not skip: tools/system-packages installs it")
        pytest.skip("PostgreSQL is not installed: tools/system-packages installs it")
    folder = Path(tempfile.mkdtemp(prefix="postgres-test-"))
    server = new_cluster(programs, folder)
    try:
        for attempt in range(3):  # the port was free a moment ago
            try:
                server.start()
                break
            except RuntimeError:
                if attempt == 2:
                    raise
                server.port = _free_port()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> str:
    return postgres_server.url()
