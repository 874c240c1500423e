"""A cluster on this machine is closed to other users of the machine."""

import asyncio
from collections.abc import Iterator
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import psutil
import pytest

from vefl_sim.sweep.cluster import LOCAL, ClusterPool, connect


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterPool]:
    pool = connect(LOCAL, 1, tmp_path_factory.mktemp("runs"))
    yield pool
    pool.close()


def listening() -> list[tuple[str, int]]:
    """Addresses at which this process and its children accept connections."""
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    connections = [connection for process in processes for connection in process.net_connections("tcp")]
    return [(one.laddr.ip, one.laddr.port) for one in connections if one.status == psutil.CONN_LISTEN]


def can_connect(address: str, security: Any) -> bool:
    """Whether the scheduler accepts a connection with these certificates."""
    from distributed.comm import connect as open_connection

    async def attempt() -> None:
        comm = await open_connection(address, timeout=2, **security.get_connection_args("client"))
        await comm.close()

    try:
        asyncio.run(attempt())
    except (OSError, TypeError, RuntimeError):  # refused; a plain Security has no certificate for TLS at all
        return False
    return True


@pytest.mark.slow
def test_a_client_without_the_certificate_is_refused(cluster: ClusterPool) -> None:
    from distributed.security import Security

    address = str(cluster).split(" at ")[1].split()[0]
    assert address.startswith("tls://127.0.0.1:")
    assert can_connect(address, cluster._client.security)
    assert not can_connect(address.replace("tls", "tcp"), Security())
    assert not can_connect(address, Security.temporary())


@pytest.mark.slow
def test_no_page_is_served(cluster: ClusterPool) -> None:
    assert {ip for ip, _ in listening()} == {"127.0.0.1"}
    answers = [answer(port, page) for _, port in listening() for page in ("health", "metrics", "json/identity.json")]
    assert set(answers) == {404, None}


def answer(port: int, page: str) -> int | None:
    """The HTTP status of a page; None if something else than a web server answers."""
    try:
        return urlopen(f"http://127.0.0.1:{port}/{page}", timeout=2).status
    except HTTPError as error:
        return error.code
    except (OSError, HTTPException):
        return None
