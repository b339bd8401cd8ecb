"""The controller process: takes the lease, watches, hosts, and stops in an orderly way. Wiring alone."""

import asyncio
import gc
import logging
import signal
import sys
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import structlog

from controller.claims.resync import Resync
from controller.claims.scope import Scope
from controller.claims.world import World
from controller.handlers import Operator
from controller.kube import closing
from controller.kube.client import ApiClient
from controller.kube.config import load_config
from controller.kube.definitions import Definitions
from controller.kube.lease import LeaderElection
from controller.metrics import HELD, HOST_CLOCK_AHEAD, ILLEGAL, LEADING, REQUEST_SECONDS, REQUESTS, TASKS
from controller.pools.host import PoolHost
from controller.probes import Probes
from controller.settings import Settings
from crds import names
from crds.durations import seconds
from statemachines.base import IllegalTransition, set_illegal_hook

log = structlog.get_logger()

KOPF_ENDS = 1.0  # s that kopf may take to close its watches; it would wait longer for tasks of ours
# s: kopf closes its connections without waiting for the server's farewell, and tells nobody of them.
FAREWELL = 0.25
LOST_LEASE = 3  # exit code: the process is to be started anew, as a standby


class App:
    """One controller. `run` returns the exit code."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        config = load_config(settings.kubeconfig)
        duration = seconds(settings.lease_duration)
        # A write is sent only while the lease outlives it, and just before a renewal a third of it is gone.
        self.client = ApiClient(
            config,
            max_writes_in_flight=settings.max_writes_in_flight,
            timeout=min(6.0, duration / 3),
            identity=settings.identity,
        )
        self.lease = LeaderElection(
            self.client,
            settings.lease_namespace or config.namespace,
            settings.lease_name,
            settings.identity,
            duration=duration,
            renew=duration / 3,
        )
        self.client.lease_left = self.lease.time_left  # none: a standby can't write, whatever it believes
        self.definitions = Definitions(self.client, names.API_VERSION, (names.POOLS, names.CLAIMS))
        self.world = World(self.client, settings.max_hand_overs, settings.namespaces)
        self.world.desk.stuck_after = seconds(settings.stuck_after)
        self.host = PoolHost(
            self.world,
            seconds(settings.brake_delay),
            seconds(settings.resync_interval),
            seconds(settings.sizing_interval),
        )
        self.reflectors = self.world.reflectors
        self.stopping = asyncio.Event()
        self.operator = Operator(
            self.host,
            config,
            settings.identity,
            self.world.scopes,
            self.stopping,
            self._listen_to_signals,
            self.definitions.wait,
        )
        self.hindrance = "starting"
        self.beginning: asyncio.Task[None] | None = None
        self.probes = Probes(lambda: "", self._not_ready)

    async def run(self) -> int:
        """Until a signal, or until the lease is lost."""
        asyncio.get_running_loop().set_exception_handler(closing.report)
        self._listen_to_signals()
        self.client.on_request = _count_request
        HOST_CLOCK_AHEAD.set_function(self.client.host_ahead)
        set_illegal_hook(_count_illegal)
        _show_memory(self.world)
        await self.probes.start(self.settings.listen)
        try:
            if not await self._until_stopped(self.definitions.wait()):
                return 0
            return await self._serve()
        finally:
            await self.probes.stop()
            await self.client.close()
            await asyncio.sleep(FAREWELL)

    async def _serve(self) -> int:
        """Stand by with everything in sight, and lead when it is our turn; until told to stop."""
        stopping = asyncio.create_task(self.stopping.wait())
        office = asyncio.create_task(self._hold_office())
        # The lease first: whoever gets it at once lists everything once, not before it and after it.
        looked = asyncio.create_task(self.lease.looked.wait())
        await asyncio.wait({stopping, office, looked}, return_when=asyncio.FIRST_COMPLETED)
        self.hindrance = "reading the cluster"
        watching = [asyncio.create_task(each.run()) for each in self.reflectors]
        operator = asyncio.create_task(self.operator.run())
        reading = asyncio.create_task(self._read_cluster())
        try:
            ended, _ = await asyncio.wait(
                {office, stopping, operator, *watching}, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            clean = stopping.done() and not office.done()
            await self._leave_office(clean=clean)
            await _cancelled(looked, reading, office, stopping, *watching)
            LEADING.set(0)
            if clean:
                with suppress(Exception):
                    await self.lease.release()
            self.stopping.set()  # kopf ends by it; cancelled in the midst of that, it leaves connections open
            await asyncio.wait({operator}, timeout=KOPF_ENDS)
            await _cancelled(operator)
        if clean:
            log.info("stopped")
            return 0
        for task in ended:
            if not task.cancelled() and (error := task.exception()) is not None:
                log.error("ended by an error", exc_info=error)
        log.error("not leading: nothing is written any more; start it again to stand by")
        return LOST_LEASE

    async def _read_cluster(self) -> None:
        """Until everything was listed once. A standby is ready then: a roll-out waits for it."""
        await self.world.node_reflector.synced.wait()
        for scope in self.world.scopes:
            await scope.settled()
        gc.collect()
        gc.freeze()  # what was listed lives long: collections over it are the tail of the latency
        gc.set_threshold(50_000, 20, 50)
        self.hindrance = ""

    async def _hold_office(self) -> None:
        """Take the lease, go to work, and return when it is lost."""
        await self.lease.acquire()
        LEADING.set(1)
        self.world.desk.led_until = self.lease.left_at
        async with asyncio.TaskGroup() as group:
            self.beginning = group.create_task(self._begin())
            await self.lease.hold()
            self.beginning.cancel()

    async def _begin(self) -> None:
        """Make sure that nothing is older than the leadership, and only then go to work."""
        since = asyncio.get_running_loop().time()
        await self.world.node_reflector.confirm(since)
        await asyncio.gather(*(self._begin_in(scope, since) for scope in self.world.scopes))
        took = asyncio.get_running_loop().time() - since
        log.info("ready", vms=len(self.world.vms), claims=len(self.world.claims), took=round(took, 3))

    async def _begin_in(self, scope: Scope, since: float) -> None:
        await scope.settled()
        if scope.readable:
            await self._work_in(scope, since)
        else:
            log.warning(
                "may not read this namespace: it is left alone until we may", namespace=scope.namespace
            )
            self.world.desk.start(self._work_in(scope, since))

    async def _work_in(self, scope: Scope, since: float) -> None:
        await scope.confirm(since, self.host.confirm)
        self.world.begin(scope.namespace)
        self.host.begin(scope.namespace)
        interval = seconds(self.settings.resync_interval)
        self.world.desk.start(Resync(self.client, self.world.claims, interval, scope.namespace).run())

    async def _leave_office(self, *, clean: bool) -> None:
        """Stop working; after a clean stop with every write answered, so that the lease may be given away."""
        if self.beginning is not None:
            self.beginning.cancel()
        if clean:
            await self.client.drained()
        self.world.stop()
        await self.host.stop(say=clean)

    def _listen_to_signals(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, self.stopping.set)

    async def _until_stopped(self, work: Coroutine[Any, Any, None]) -> bool:
        """Whether the work was done before a signal came."""
        doing, stopping = asyncio.create_task(work), asyncio.create_task(self.stopping.wait())
        done, _ = await asyncio.wait({doing, stopping}, return_when=asyncio.FIRST_COMPLETED)
        await _cancelled(doing, stopping)
        return doing in done

    def _not_ready(self) -> str:
        taking_over = self.beginning is not None and not self.beginning.done()
        if not self.hindrance:
            return self.lease.trouble or ("taking over" if taking_over else "")
        troubles = (self.definitions.trouble, *(each.trouble for each in self.reflectors))
        return ": ".join([self.hindrance, *filter(None, troubles)][:2])


async def _cancelled(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _show_memory(world: World) -> None:
    loop = asyncio.get_running_loop()
    TASKS.set_function(lambda: len(asyncio.all_tasks(loop)))
    HELD.count = world.held


def _count_request(step: str, status: int, took: float) -> None:
    REQUESTS.labels(step, str(status)).inc()
    REQUEST_SECONDS.labels(step).observe(took)


def _count_illegal(refused: IllegalTransition) -> None:
    ILLEGAL.labels(refused.kind).inc()
    log.error("illegal transition refused", why=str(refused))


def configure_logging(settings: Settings) -> None:
    """Structured lines on stderr: text on a terminal, JSON elsewhere."""
    as_text = settings.log_format == "text" or (settings.log_format == "auto" and sys.stderr.isatty())
    renderer = structlog.dev.ConsoleRenderer() if as_text else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(settings.log_level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(name)s: %(message)s")
