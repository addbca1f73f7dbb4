"""The serving certificate changes while the webhook serves."""

import asyncio
import ssl
from datetime import UTC, datetime
from pathlib import Path

import certs
from tests.waiting import eventually
from tests.webhook.world import PROFILES, World
from webhook.app import Options, run


async def test_a_replaced_certificate_is_served_without_a_restart(tmp_path: Path) -> None:
    serving = certs.ensure(tmp_path, ["127.0.0.1"], datetime.now(UTC))
    stop = asyncio.Event()
    ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    options = Options("127.0.0.1", 0, serving.cert_file, serving.key_file, PROFILES)
    task = asyncio.create_task(run(options, World(), stop, ready.set_result))
    port = await asyncio.wait_for(ready, 10)

    async def served() -> str:
        return await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", port))

    def on_file() -> str:
        return serving.cert_file.read_text()

    assert await served() == on_file()
    serving.key_file.write_text("half written")
    await asyncio.sleep(1.2)
    assert await served() == on_file()
    before = on_file()
    certs.ensure(tmp_path, ["127.0.0.1", "localhost"], datetime.now(UTC))
    assert on_file() != before

    async def replaced() -> bool:
        return await served() == on_file()

    await eventually(replaced)
    stop.set()
    await task
