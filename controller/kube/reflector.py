"""Keeps a store equal to one kind on the API server: list, then watch, for ever.

Every event is decoded once, straight into the caller's struct. It must never die of an event, an answer or a
missing kind, and never lose that an object vanished while it did not look.
"""

import asyncio
import math
import random
from collections.abc import Awaitable, Callable
from typing import Any, Generic

import msgspec
import structlog

from controller.kube.client import METADATA_ONLY, ApiClient
from controller.kube.errors import ApiError, Forbidden, Gone, NotFound, NotServed, UnknownOutcome, classify
from controller.kube.objects import KubeObject, ObjectMeta
from controller.kube.pages import ListMeta, RawPage, metadata_page
from controller.kube.paths import collection
from controller.kube.store import Store, T

_PAGE = 250  # objects in one answer of a list
_METADATA_PAGE = 2000
_FEW = 32  # objects that are read one by one when they alone differ; with more, all are listed anew
_LIST_LIMIT = 60.0  # seconds for one page: as long as the API server itself allows
_IDLE = 90.0  # seconds; bookmarks come every minute
_SHORT = 5.0  # seconds: a watch that lives longer was a good one even if nothing happened
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 10.0
_ABSENT_PAUSE = 3.0  # at most, between two looks for a kind that is not served: somebody is installing it
_ENOUGH = 5  # failures in a row after which the version we watch from is itself suspected

log = structlog.get_logger(__name__)


class _OddEvent(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Status(msgspec.Struct):
    code: int = 0


class Reflector(Generic[T]):
    """Run `run()` as a task; `synced` is set when the store is complete for the first time.

    `struct` is a msgspec struct with `metadata: ObjectMeta`; `path` the collection's, of one `namespace` or
    of all. `settled` is set when it is synced, or when the API server says that we may not see it.
    `misfit` makes the best of an object that does not fit the struct, given its JSON and why; without it such
    an object is skipped.
    `on_served` is told when the API server stops serving the kind and when it serves it again: a kind that
    may come and go is not waited for, and what was known of it is kept until a list says otherwise. One that
    is `optional` is not waited for either when we may not see it.
    """

    def __init__(
        self,
        client: ApiClient,
        path: str,
        struct: type[T],
        store: Store[T],
        *,
        namespace: str = "",
        label_selector: str = "",
        misfit: Callable[[msgspec.Raw, str], T] | None = None,
        on_served: Callable[[bool], None] | None = None,
        optional: bool = False,
        idle: float = _IDLE,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.synced = asyncio.Event()
        self.settled = asyncio.Event()
        self.trouble = ""  # why it can't be listed or watched just now
        self._client = client
        self._path = path
        self._namespace = namespace
        self._store = store
        self._misfit = misfit
        self._on_served = on_served
        self._served = True
        self._optional = optional
        self._selector = {"labelSelector": label_selector} if label_selector else {}
        self._idle = idle
        self._sleep = sleep
        page: Any = msgspec.defstruct("Page", [("metadata", ListMeta), ("items", list[struct], [])])  # type: ignore[valid-type]  # known at run time only
        event: Any = msgspec.defstruct("Event", [("type", str), ("object", struct)])
        self._struct = struct
        self._pages = msgspec.json.Decoder(page)
        self._events = msgspec.json.Decoder(event)
        self._version = ""  # where the watch goes on; empty: list first
        self._failures = 0
        self._complaint = ""
        self._read_at = -math.inf  # when the last consistent read of everything began
        self._leash: asyncio.Timeout | None = None  # of the watch while there is one

    async def run(self) -> None:
        """Never returns; cancel it."""
        while True:
            try:
                if not self._version or not self._served:
                    await self._list()
                await self._watch()
            except Gone:
                self._version = ""
            except ApiError as error:
                self._complain(error)
                self._do_without(error)
                if isinstance(error, NotFound | NotServed) or self._failures >= _ENOUGH:
                    self._version = ""
            self._failures += 1
            most = _LONGEST_PAUSE if self._served else _ABSENT_PAUSE
            longest = min(most, _FIRST_PAUSE * 2 ** min(self._failures, 10))
            await self._sleep(longest * random.uniform(0.5, 1.0))

    async def confirm(self, since: float) -> None:
        """Return when the store is as new as a consistent read that began at `since` (loop time) or later.

        However broken the watch is: what was listed by `run` once is compared with a list of metadata.
        """
        await self.synced.wait()
        failures = 0
        while self._read_at < since:
            try:
                await self._compare()
            except ApiError as error:
                self._complain(error)
                if self._do_without(error):
                    return
                failures += 1
                longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(failures, 10))
                await self._sleep(longest * random.uniform(0.5, 1.0))

    def _complain(self, error: ApiError) -> None:
        """Once for each new trouble, not once for each attempt."""
        self.trouble = str(error)
        complaint = f"{type(error).__name__} {error.status}"
        if complaint != self._complaint:
            self._complaint = complaint
            log.warning("cannot watch; will keep trying", path=self._path, error=str(error))

    def _do_without(self, error: ApiError) -> bool:
        """What need not be there holds nobody up."""
        absent = isinstance(error, NotServed) and self._on_served is not None
        if absent:
            self._tell_served(served=False)
        if isinstance(error, Forbidden):
            self.settled.set()
        if absent or (isinstance(error, Forbidden) and self._optional):
            self.synced.set()
            self.settled.set()
            return True
        return False

    def _tell_served(self, *, served: bool) -> None:
        if served is self._served or self._on_served is None:
            return
        self._served = served
        if not served and self._leash is not None:
            self._leash.reschedule(0.0)  # only a list says that it is served again
            self._leash = None
        self._on_served(served)

    # List

    async def _list(self) -> None:
        began = asyncio.get_running_loop().time()
        objects, version = await self._read(self._page, _PAGE)
        self._store.replace(objects, version, self._namespace)
        self._version = version
        self._has_read(began)
        if not self.synced.is_set():
            log.info("synced", path=self._path, objects=len(objects))
            self.synced.set()
            self.settled.set()
        self._tell_served(served=True)

    async def _compare(self) -> None:
        """A list of metadata alone, and the objects that turn out to have changed."""
        began = asyncio.get_running_loop().time()
        found, version = await self._read(metadata_page, _METADATA_PAGE, accept=METADATA_ONLY)
        metas: list[ObjectMeta] = [each.metadata for each in found]
        changed = self._store.changed(metas)
        log.info("compared", path=self._path, objects=len(metas), changed=len(changed))
        if len(changed) > _FEW:
            await self._list()
            return
        await asyncio.gather(*map(self._fetch, changed))
        self._store.reconcile(metas, version, self._namespace)
        self._has_read(began)

    async def _read(self, decoded: Callable[[bytes], Any], most: int, **accept: str) -> tuple[list[Any], str]:
        """All pages of a list, of at most so many items each, and the version that it is of.

        ResourceVersion stays unset: the answer is what etcd holds now, not what a cache remembers.
        """
        items: list[Any] = []
        params = {"limit": str(most), **self._selector}
        while True:
            page = decoded(
                await self._client.get(self._path, params, step="list", limit=_LIST_LIMIT, **accept)
            )
            items += page.items or ()
            if not page.metadata.next:
                return items, page.metadata.resource_version
            params["continue"] = page.metadata.next

    def _has_read(self, began: float) -> None:
        """The store is as new as a read that began then: whatever was in the way of that is over."""
        self._read_at = max(self._read_at, began)
        self._complaint = self.trouble = ""

    async def _fetch(self, meta: ObjectMeta) -> None:
        """One object, by a list of its name: what may be listed need not be allowed to be read otherwise."""
        params = {"fieldSelector": f"metadata.name={meta.name}", **self._selector}
        page = self._page(
            await self._client.get(self._home(meta.namespace), params, step="list", limit=_LIST_LIMIT)
        )
        for each in page.items:
            self._store.admit(each)
        if not any(each.metadata.uid == meta.uid for each in page.items):
            self._store.miss(meta.uid, page.metadata.resource_version)

    def _home(self, namespace: str) -> str:
        """The collection of one namespace: there the API server finds a name without looking through all."""
        return self._path if self._namespace else collection(self._path, namespace)

    def _page(self, body: bytes) -> Any:
        try:
            return self._pages.decode(body)
        except msgspec.MsgspecError:
            pass
        try:
            raw = msgspec.json.decode(body, type=RawPage)
        except msgspec.MsgspecError as error:
            raise UnknownOutcome(message=f"not a list: {error}") from error
        return self._pages.type(raw.metadata, [obj for item in raw.items if (obj := self._one(item))])

    def _one(self, item: msgspec.Raw) -> T | None:
        try:
            return msgspec.json.decode(item, type=self._struct)
        except msgspec.MsgspecError as error:
            if (found := self._best_of(item, str(error))) is None:
                log.exception("object skipped: it does not fit", path=self._path)
            return found

    def _best_of(self, item: msgspec.Raw, why: str) -> T | None:
        try:
            return None if self._misfit is None else self._misfit(item, why)
        except msgspec.MsgspecError:
            return None

    # Watch

    async def _watch(self) -> None:
        params = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(random.randint(300, 600)),
            **self._selector,
        }
        now = asyncio.get_running_loop().time
        started = heard = now()
        parts: list[bytes] = []  # of a line that has not ended: one of 300 kB comes in many chunks
        try:
            async with (
                asyncio.timeout(None) as self._leash,
                self._client.stream(self._path, params, idle=self._idle) as chunks,
            ):
                async for chunk in chunks:
                    heard = now()
                    parts.append(chunk)
                    if b"\n" in chunk:
                        *lines, rest = b"".join(parts).split(b"\n")
                        parts = [rest]
                        self._take(lines)
        except TimeoutError:
            return
        except UnknownOutcome:
            # Of a kind that never had an object there are no bookmarks either: silence alone is no trouble.
            if now() - heard < 0.9 * self._idle:
                raise
        finally:
            self._leash = None
            if now() - started > _SHORT:
                self._failures = 0

    def _take(self, lines: list[bytes]) -> None:
        """A whole chunk in one go: whoever looks at the store next sees all of it."""
        for line in lines:
            try:
                event = self._events.decode(line)
            except msgspec.MsgspecError as error:
                self._odd(line, str(error))
                continue
            try:
                self._apply(event.type, event.object, line)
            except ApiError:
                raise
            except Exception:  # a listener's mistake must not blind us
                log.exception("event skipped", path=self._path)

    def _apply(self, kind: str, obj: T, line: bytes) -> None:
        if kind not in {"ADDED", "MODIFIED", "DELETED", "BOOKMARK"}:
            self._odd(line, f"type {kind}")
            return
        self._version = obj.metadata.resource_version
        self._failures = 0
        self._complaint = self.trouble = ""
        if kind == "DELETED":
            self._store.remove(obj)
        elif kind != "BOOKMARK":
            self._store.apply(obj)

    def _odd(self, line: bytes, why: str) -> None:
        """Bookmarks and errors, which need not look like the kind; and what nobody can read."""
        try:
            event = msgspec.json.decode(line, type=_OddEvent)
            if event.type == "ERROR":
                raise classify(
                    msgspec.json.decode(event.object, type=_Status).code or 500, bytes(event.object)
                )
            version = msgspec.json.decode(event.object, type=KubeObject).metadata.resource_version
        except msgspec.MsgspecError:
            event, version = None, ""
        if event is not None and event.type != "BOOKMARK" and (found := self._best_of(event.object, why)):
            self._apply(event.type, found, line)
            return
        self._version = version or self._version
        if event is None or event.type != "BOOKMARK":
            log.error("event skipped: it does not fit", path=self._path, error=why)
