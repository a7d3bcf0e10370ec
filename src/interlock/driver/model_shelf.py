"""The models that a driver has opened: one connection for all sessions that use the same one."""

import asyncio
import os
from pathlib import Path

import msgspec

from interlock.agents.models.credentials import SCRIPTED, ApiKey, Credentials
from interlock.agents.models.model_port import ModelPort, ModelUnavailable
from interlock.agents.models.providers import open_model
from interlock.agents.models.retrying import ModelPause
from interlock.app.unattended.driver_settings import DriverSettings


class OpenModel(msgspec.Struct, frozen=True):
    port: ModelPort
    pause: ModelPause
    """Shared by all sessions with the model: if one is told to wait, all of them wait."""


class ModelShelf:
    def __init__(self, settings: DriverSettings) -> None:
        self._settings = settings
        self._open: dict[str, OpenModel] = {}
        self._pauses: dict[str, ModelPause] = {}
        self._keys: set[ApiKey] = set()
        self._opening: dict[str, asyncio.Lock] = {}
        """By provider: sessions that wait for the same import must not use up the threads."""

    async def model(self, name: str) -> OpenModel:
        """Return the model of that name. The first use opens it in a thread: the import is slow.

        Raises:
            ModelUnavailable: it cannot be used; what to do is in its hint.
        """
        provider = name.partition(":")[0]
        async with self._opening.setdefault(provider, asyncio.Lock()):
            if name not in self._open:
                credentials = self._credentials(provider)
                self._keys.update(credentials.keys.values())
                port = await asyncio.to_thread(
                    open_model,
                    name,
                    credentials=credentials,
                    base_url=self._settings.base_url,
                    call_seconds=self._settings.call_seconds,
                )
                pause = self._pauses.setdefault(name, ModelPause())
                self._open[name] = OpenModel(port, pause)
            return self._open[name]

    def forget(self, name: str) -> None:
        """Open it anew the next time: its key may be another one then."""
        self._open.pop(name, None)

    async def close(self) -> None:
        for model in self._open.values():
            await model.port.close()

    def hide_keys(self, text: str) -> str:
        """Return the text without the keys in use: a tool may have found one, and no model may."""
        for key in self._keys:
            text = key.redact(text)
        return text

    def _credentials(self, provider: str) -> Credentials:
        """The keys of the environment, or the one in the file that the settings name."""
        path = self._settings.key_file
        if not path or provider == SCRIPTED:
            return Credentials.from_environment(os.environ, provider)
        try:
            key = Path(path).expanduser().read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ModelUnavailable(
                f"The key file `{path}` cannot be read: {error}",
                "Correct `key_file` under `[driver]`, then `interlock driver resume SESSION`.",
            ) from error
        return Credentials({provider: ApiKey(key)})
